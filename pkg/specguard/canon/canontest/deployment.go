// SPDX-License-Identifier: Apache-2.0

// Package canontest makes realistic objects for tests and benchmarks, as the
// API server writes them: compact JSON in the field order of the Go types.
package canontest

import (
	"fmt"
	"strings"
)

// Deployment is the JSON of an apps/v1 Deployment of about size bytes, at least
// two KiB: containers, with environment variables up to the size. It has no
// $(VAR) references.
func Deployment(size int) []byte {
	const perContainer, perVariable = 30, 92 // variables; bytes each, with their share of a container
	variables := max(0, (size-1900)/perVariable)
	containers := max(1, (variables+perContainer/2)/perContainer)
	var b strings.Builder
	b.WriteString(deploymentHead)
	for c := range containers {
		if c > 0 {
			b.WriteByte(',')
		}
		count := (variables - variables*c/containers) - (variables - variables*(c+1)/containers)
		writeContainer(&b, c, count)
	}
	b.WriteString(deploymentTail)
	return []byte(b.String())
}

const deploymentHead = `{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"checkout","namespace":"shop",` +
	`"uid":"2f1c1c0e-5d0a-4f3d-9a55-6a7d2f6f0b11","resourceVersion":"481516","generation":7,"labels":{"app":"checkout"}},` +
	`"spec":{"replicas":3,"selector":{"matchLabels":{"app":"checkout"}},"template":{"metadata":{"labels":{"app":"checkout",` +
	`"version":"v42"},"annotations":{"prometheus.io/scrape":"true","prometheus.io/port":"9090"}},"spec":{"volumes":[` +
	`{"name":"config","configMap":{"name":"checkout","defaultMode":420}},{"name":"cache","emptyDir":{"sizeLimit":"1Gi"}}],` +
	`"containers":[`

const deploymentTail = `],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst",` +
	`"serviceAccountName":"checkout","serviceAccount":"checkout","securityContext":{"runAsNonRoot":true},` +
	`"schedulerName":"default-scheduler"}},"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"25%",` +
	`"maxSurge":"25%"}},"revisionHistoryLimit":10,"progressDeadlineSeconds":600},"status":{"observedGeneration":7,` +
	`"replicas":3,"updatedReplicas":3,"readyReplicas":3,"availableReplicas":3}}`

func writeContainer(b *strings.Builder, c, variables int) {
	fmt.Fprintf(b, `{"name":"app-%d","image":"registry.example.com/shop/checkout-%d:1.42.%d","command":["/checkout"],`, c, c, c)
	b.WriteString(`"args":["--listen=:8080","--log-format=json"],"ports":[{"name":"http","containerPort":8080,"protocol":"TCP"},` +
		`{"name":"metrics","containerPort":9090,"protocol":"TCP"}],"env":[`)
	for v := range variables {
		if v > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(b, `{"name":"SETTING_%03d","value":"https://service-%d.shop.svc:8443/v1"}`, (v*37)%1000, v)
	}
	b.WriteString(`],"resources":{"limits":{"cpu":"2","memory":"1Gi"},"requests":{"cpu":"250m","memory":"512Mi"}},` +
		`"volumeMounts":[{"name":"config","mountPath":"/etc/checkout"},{"name":"cache","mountPath":"/var/cache"}],` +
		`"livenessProbe":{"httpGet":{"path":"/healthz","port":8080,"scheme":"HTTP"},"timeoutSeconds":1,"periodSeconds":10,` +
		`"successThreshold":1,"failureThreshold":3},"terminationMessagePath":"/dev/termination-log",` +
		`"terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}`)
}
