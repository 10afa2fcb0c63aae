// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
)

// unmanagedManifest is two Services that are not managed, one like the one that is and
// one without an address of its own, and one whose pod is in the node's network.
const unmanagedManifest = `
apiVersion: v1
kind: Service
metadata: {name: plain, namespace: NS}
spec:
  selector: {app: pay, track: stable}
  ports: [{name: http, port: 80, targetPort: 8080}]
---
apiVersion: v1
kind: Service
metadata: {name: headless, namespace: NS}
spec:
  clusterIP: None
  selector: {app: pay, track: stable}
  ports: [{name: http, port: 8080}]
---
apiVersion: v1
kind: Service
metadata: {name: onhost, namespace: NS}
spec:
  selector: {app: onhost}
  ports: [{name: http, port: 80, targetPort: 18080}]
---
apiVersion: v1
kind: Pod
metadata: {name: onhost, namespace: NS, labels: {app: onhost}}
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 1
  containers:
  - name: app
    image: docker.io/plumbline/shop:dev
    resources: {requests: {cpu: 10m, memory: 16Mi}}
    env: [{name: SHOP_NAME, value: pay}, {name: SHOP_VERSION, value: stable}, {name: SHOP_ADDRESS, value: ":18080"}]
    readinessProbe: {httpGet: {path: /healthz, port: 18080}, periodSeconds: 1, timeoutSeconds: 10}
---
`

// cronJobManifest is a CronJob that somebody starts by hand.
const cronJobManifest = `
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly, namespace: NS}
spec:
  schedule: "0 3 * * *"
  suspend: true
  jobTemplate:
    spec:
      backoffLimit: 0
      template:
        metadata: {labels: {plumbline.dev/inject-mode: redirect}}
        spec:
          restartPolicy: Never
          containers:
          - {name: app, image: docker.io/plumbline/redis:dev, command: [redis-server, --version]}
---
`

// member is the client as a StatefulSet, whose pod has the name of the one before it.
func (c client) member() string {
	return strings.NewReplacer("kind: Deployment", "kind: StatefulSet", "  replicas: 1\n", "  replicas: 1\n  serviceName: headless\n").Replace(c.manifest())
}

// memberReplaced deletes the pod of the StatefulSet. The one that comes after it has
// its name and another identity, and meets what the release says from its first order
// on: all go to the canary.
func (m *mesh) memberReplaced() {
	m.split("{type: Percentage, percentages: {stable: 0, canary: 100}}")
	m.kubectl("rollout", "status", "statefulset/member", "--timeout=90s")
	before, err := m.pod(m.Context(), "member")
	m.must(err)
	m.kubectl("delete", "pod", before.Name, "--wait=true")
	m.eventually("another pod of that name is served", func(ctx context.Context) (bool, string) {
		now, err := m.pod(ctx, "member")
		if err != nil {
			return false, err.Error()
		}
		streams, err := m.streams(ctx)
		if err != nil {
			return false, err.Error()
		}
		s, connected := streams[before.Name]
		return connected && now.UID != before.UID && s.PodUID == string(now.UID), fmt.Sprintf("pod %s, was %s; its proxy: %+v", now.UID, before.UID, s)
	})
	m.release("acknowledged by all", acknowledged)
	if seen := m.counted("member", visits{}, 100); seen.Answered["stable"] > 0 {
		m.Errorf("the stable version answers: %v", seen.Answered)
	}
	m.unharmed("member")
	m.kubectl("delete", "statefulset", "member")
}
