{{/*
Each template takes the context of the chart that calls it and reads .Values.noren-sidecar. In a pod template:

  initContainers:
    {{- include "noren-sidecar.initContainers" . | nindent 8 }}
  containers:
    - name: the-engine
      args: [..., {{ include "noren-sidecar.engineArgs" . }}]
      lifecycle:
        {{- include "noren-sidecar.engineLifecycle" . | nindent 12 }}
    {{- include "noren-sidecar.containers" . | nindent 8 }}
  volumes:
    {{- include "noren-sidecar.volumes" . | nindent 8 }}
  terminationGracePeriodSeconds: {{ include "noren-sidecar.gracePeriod" . }}

and a ConfigMap of the name noren-sidecar.configMapName with the data noren-sidecar.configMapData.
*/}}

{{- define "noren-sidecar.configMapName" -}}
{{ printf "%s-noren" .Release.Name | trunc 63 }}
{{- end }}

{{- define "noren-sidecar.configMapData" -}}
noren.yaml: |
  {{- index .Values "noren-sidecar" "config" | toYaml | nindent 2 }}
{{- end }}

{{- define "noren-sidecar.podLabels" -}}
noren.dev/sidecar: "true"
{{- end }}

{{- define "noren-sidecar.initContainers" -}}
{{- if eq (index .Values "noren-sidecar" "mode") "native" -}}
{{ include "noren-sidecar.container" . }}
{{- end }}
{{- end }}

{{- define "noren-sidecar.containers" -}}
{{- if eq (index .Values "noren-sidecar" "mode") "classic" -}}
{{ include "noren-sidecar.container" . }}
{{- end }}
{{- end }}

{{- define "noren-sidecar.image" -}}
{{- if .digest -}}{{ .repository }}@{{ .digest }}{{- else -}}{{ .repository }}:{{ .tag }}{{- end -}}
{{- end }}

{{- define "noren-sidecar.container" -}}
{{- $noren := index .Values "noren-sidecar" -}}
- name: noren
  image: {{ include "noren-sidecar.image" $noren.image }}
  {{- with $noren.image.pullPolicy }}
  imagePullPolicy: {{ . }}
  {{- end }}
  {{- if eq $noren.mode "native" }}
  restartPolicy: Always
  {{- end }}
  env:
    - name: NOREN_CONFIG
      value: /etc/noren/noren.yaml
    - name: NOREN_LISTEN
      value: ":{{ $noren.port }}"
    - name: NOREN_UPSTREAM
      value: http://127.0.0.1:{{ $noren.enginePort }}
  ports:
    - name: noren-metrics
      containerPort: 9464
  # Its own health, never the engine's: the engine starts only after this.
  startupProbe:
    httpGet:
      path: /-/healthy
      port: 9464
    periodSeconds: 1
    failureThreshold: 30
  livenessProbe:
    httpGet:
      path: /-/healthy
      port: 9464
    periodSeconds: 10
    failureThreshold: 3
  readinessProbe:
    httpGet:
      path: /-/ready
      port: 9464
    periodSeconds: 2
    failureThreshold: 2
  lifecycle:
    preStop:
      exec:
        command:
          - /usr/local/bin/noren
          - ctl
          - drain
  {{- with $noren.resources }}
  resources:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    runAsNonRoot: true
    capabilities:
      drop:
        - ALL
    seccompProfile:
      type: RuntimeDefault
  terminationMessagePolicy: FallbackToLogsOnError
  volumeMounts:
    - name: noren-config
      mountPath: /etc/noren
      readOnly: true
    - name: noren-podinfo
      mountPath: /etc/podinfo
      readOnly: true
    - name: noren-run
      mountPath: /run/noren
{{- end }}

{{- define "noren-sidecar.volumes" -}}
- name: noren-config
  configMap:
    name: {{ include "noren-sidecar.configMapName" . }}
- name: noren-podinfo
  downwardAPI:
    items:
      - path: max-concurrency
        fieldRef:
          fieldPath: metadata.annotations['noren.dev/max-concurrency']
- name: noren-run
  emptyDir:
    medium: Memory
    sizeLimit: 1Mi
{{- end }}
