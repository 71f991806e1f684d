// How a Node client is asked (JSON in its argument) and says what it saw (JSON lines on stdout); node.py is the other end.
const ask = JSON.parse(process.argv[2]);
const say = (what) => process.stdout.write(JSON.stringify(what) + "\n");

// Tells an error as the SDK's error class understood it.
const refused = (error, detail) => say({
  refused: {
    kind: error.constructor.name, status: error.status, message: detail.message ?? JSON.stringify(error.error),
    type: detail.type ?? null, reason: error.headers?.get("x-noren-reason") ?? null,
  },
});

// Stays alive after a leave, so that it is the leave that is noticed and not the end of this process.
const left = () => { say({ left: true }); process.stdin.resume(); };

module.exports = { ask, say, refused, left };
