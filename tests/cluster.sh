#!/usr/bin/env bash
# cluster.sh NAMESPACE NOREN_IMAGE DEMO_IMAGE: on a real cluster, and so not part of the tests that run by themselves. Needs
# kubectl with a context, Kubernetes 1.29 or newer, and two images of docker/Dockerfile (targets runtime and demo), NAME:TAG,
# that the nodes can pull. Makes the namespace, puts noren in front of the simulated engine, and checks what only a real kubelet can
# show: order of start and end, hooks, admission under the "restricted" profile, how long tuning takes. Removes the
# namespace at the end. Ends with the totals.
set -u
[ $# -eq 3 ] || { sed -n '2,6s/^# //p' "$0"; exit 2; }
namespace=$1 noren_image=$2 demo_image=$3
cd "$(dirname "$0")/.." || exit 1
work=$(mktemp -d)
passed=0 failed=0
k() { kubectl -n "$namespace" "$@"; }
check() { # what, command...
    local what=$1; shift
    if "$@" >"$work/log" 2>&1; then
        passed=$((passed + 1)); echo "ok    $what"
    else
        failed=$((failed + 1)); echo "FAIL  $what"; tail -n 20 "$work/log" | sed 's/^/        /'
    fi
}
end() {
    kubectl delete namespace "$namespace" --wait=false >/dev/null 2>&1
    rm -rf "$work"
}
trap end EXIT

if kubectl get namespace "$namespace" >/dev/null 2>&1; then
    trap 'rm -rf "$work"' EXIT
    echo "the namespace $namespace is there already; name one that may be made and removed"
    exit 2
fi
kubectl create namespace "$namespace" >/dev/null
kubectl label namespace "$namespace" pod-security.kubernetes.io/enforce=restricted >/dev/null

# An overlay in the repository's tree, as components have to be named by a relative path.
overlay=$(mktemp -d deploy/kustomize/examples/cluster-XXXXXX)
trap 'end; rm -rf "$overlay"' EXIT
cat >"$overlay/engine.yaml" <<Y
apiVersion: apps/v1
kind: Deployment
metadata: {name: engine, labels: {noren.dev/engine: other}}
spec:
  selector: {matchLabels: {app: engine}}
  template:
    metadata: {labels: {app: engine}}
    spec:
      securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
      containers:
        - name: engine
          image: $demo_image
          command: [/usr/local/bin/noren-sim, --listen, "127.0.0.1:8200", --model, demo, --ttft, "0.1", --tps, "50", --gap, fixed, --max-output, "4000"]
          ports: [{name: http, containerPort: 8000}]
          readinessProbe: {httpGet: {path: /health, port: http}}
          securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
---
apiVersion: v1
kind: Pod
metadata: {name: client}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
  containers:
    - name: client
      image: $demo_image
      command: [/usr/local/bin/noren-sim, --listen, "127.0.0.1:8999"]
      securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
Y
cat >"$overlay/kustomization.yaml" <<Y
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [engine.yaml]
components: [../../sidecar]
images: [{name: noren, newName: "${noren_image%:*}", newTag: "${noren_image##*:}"}]
Y
pod() { k get pod -l app=engine --field-selector status.phase=Running -o jsonpath='{.items[0].metadata.name}'; }
limit() { k exec "$1" -c noren -- noren ctl status --json | sed -n 's/.*"concurrency_limit":\([0-9]*\).*/\1/p'; }
until_limit() { # pod, value: seconds that it took
    local begin=$SECONDS
    until [ "$(limit "$1")" = "$2" ]; do
        [ $((SECONDS - begin)) -lt 150 ] || return 1
        sleep 1
    done
    echo "      $((SECONDS - begin)) s"
}

check "admitted under the restricted profile" k apply -k "$overlay"
check "ready" k rollout status deployment/engine --timeout=180s
check "client is there" k wait pod/client --for=condition=Ready --timeout=120s
name=$(pod)
check "noren check --here, with the pod's file and variables" k exec "$name" -c noren -- noren check --here
check "noren ctl limit" k exec "$name" -c noren -- noren ctl limit 48
check "... until a reload" k exec "$name" -c noren -- noren ctl reload
k annotate pod "$name" noren.dev/max-concurrency=47 >/dev/null
check "limit by annotation" until_limit "$name" 47
grep '^ ' "$work/log"
k annotate pod "$name" noren.dev/max-concurrency- >/dev/null
k create configmap noren-config --from-literal=noren.yaml='admission: {max_concurrency: 46}' --dry-run=client -o yaml | k apply -f - >/dev/null
k annotate pod "$name" "noren.dev/rev=$(date +%s)" >/dev/null
check "limit by ConfigMap, with a push" until_limit "$name" 46
grep '^ ' "$work/log"

# One stream of 60 s, and the pod is deleted after 5: noren-load checks every token.
address=$(k get pod "$name" -o jsonpath='{.status.podIP}')
case $address in *:*) address="[$address]" ;; esac
k exec client -- /usr/local/bin/noren-load --url "http://$address:8000" --model demo -c 1 -n 1 --max-tokens 3000 --json >"$work/load.json" 2>&1 &
load=$!
sleep 5
begin=$SECONDS
k delete pod "$name" --wait=true >/dev/null
echo "      the pod was gone after $((SECONDS - begin)) s"
check "a stream survives the deletion of its pod" wait "$load"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
