{{/* What changes on the engine, as deploy/kustomize/engines does it. */}}

{{/*
SIGTERM has to wait until noren has drained. begin_within: this hook and noren's own run at the same time, and the drain
may begin a moment later.
*/}}
{{- define "noren-sidecar.engineLifecycle" -}}
preStop:
  httpGet:
    path: /-/drain-wait?begin_within=5
    port: 9464
{{- end }}

{{/* A list in JSON, to come after the engine's own arguments: of a flag that stands twice, the last one counts. */}}
{{- define "noren-sidecar.engineArgs" -}}
{{- $noren := index .Values "noren-sidecar" -}}
{{- $port := toString $noren.enginePort -}}
{{- if has $noren.engine (list "vllm" "sglang" "llamacpp" "tensorrt-llm") -}}
{{ list "--host" "127.0.0.1" "--port" $port | toJson }}
{{- else if eq $noren.engine "triton" -}}
{{ list "--http-address=127.0.0.1" (printf "--http-port=%s" $port) | toJson }}
{{- else -}}
[]
{{- end -}}
{{- end }}

{{/* The same for engines that are told by environment. */}}
{{- define "noren-sidecar.engineEnv" -}}
{{- $noren := index .Values "noren-sidecar" -}}
{{- $port := toString $noren.enginePort -}}
{{- if eq $noren.engine "tgi" -}}
{{ list (dict "name" "HOSTNAME" "value" "127.0.0.1") (dict "name" "PORT" "value" $port) | toJson }}
{{- else if eq $noren.engine "ollama" -}}
{{ list (dict "name" "OLLAMA_HOST" "value" (printf "127.0.0.1:%s" $port)) | toJson }}
{{- else -}}
[]
{{- end -}}
{{- end }}

{{/* 160s -> 160 */}}
{{- define "noren-sidecar.seconds" -}}
{{- $text := toString . -}}
{{- $number := regexFind "^[0-9]+" $text | int -}}
{{- if hasSuffix "ms" $text -}}{{ div (add $number 999) 1000 }}
{{- else if hasSuffix "m" $text -}}{{ mul $number 60 }}
{{- else if hasSuffix "h" $text -}}{{ mul $number 3600 }}
{{- else -}}{{ $number }}
{{- end -}}
{{- end }}

{{/* Refuses a grace period in which a drain does not fit: at its end the kubelet kills what still streams. */}}
{{- define "noren-sidecar.gracePeriod" -}}
{{- $noren := index .Values "noren-sidecar" -}}
{{- $drain := $noren.config.drain -}}
{{- $needed := add (include "noren-sidecar.seconds" $drain.lame_duck) (include "noren-sidecar.seconds" $drain.timeout) 5 -}}
{{- $grace := int $noren.terminationGracePeriodSeconds -}}
{{- if lt $grace (int $needed) -}}
{{- fail (printf "terminationGracePeriodSeconds is %d; drain.lame_duck + drain.timeout + 5 s take %d" $grace (int $needed)) -}}
{{- end -}}
{{ $grace }}
{{- end }}
