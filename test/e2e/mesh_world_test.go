// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness"
)

// ordersPerSecond of each client. A client that orders by gRPC and on WebSockets as well sends besidesPerSecond
// of each.
const (
	ordersPerSecond  = 30
	besidesPerSecond = 10
)

// meshManifest is a Service with two versions behind it, in a namespace whose pods get
// a proxy. The Service itself selects the stable one alone, so that a client without a
// proxy never meets the canary. The pods wait a moment before they end, as pods
// behind any Service have to whose endpoints are told to others. A probe may take long,
// since a node that is short of processors must not look like a version without pods.
const meshManifest = `
apiVersion: v1
kind: Namespace
metadata: {name: NS, labels: {plumbline.dev/inject: enabled}}
---
apiVersion: v1
kind: Service
metadata:
  name: pay
  namespace: NS
  labels: {plumbline.dev/managed: "true"}
  annotations: {plumbline.dev/hosts: NS.example.com}
spec:
  selector: {app: pay, track: stable}
  ports: [{name: http, port: 80, targetPort: 8080}]
---
`

// jobManifest does something short, beside a proxy.
const jobManifest = `
apiVersion: batch/v1
kind: Job
metadata: {name: job-MODE, namespace: NS}
spec:
  backoffLimit: 0
  template:
    metadata: {labels: {plumbline.dev/inject-mode: MODE}}
    spec:
      restartPolicy: Never
      containers:
      - {name: app, image: docker.io/plumbline/redis:dev, command: [redis-server, --version]}
---
`

// serverManifest is one version.
const serverManifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: pay-TRACK, namespace: NS}
spec:
  replicas: 2
  selector: {matchLabels: {app: pay, track: TRACK}}
  strategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}
  template:
    metadata: {labels: {app: pay, track: TRACK, plumbline.dev/inject: disabled}}
    spec:
      terminationGracePeriodSeconds: 20
      containers:
      - name: app
        image: docker.io/plumbline/shop:dev
        resources: {requests: {cpu: 10m, memory: 16Mi}}
        env: [{name: SHOP_NAME, value: pay}, {name: SHOP_VERSION, value: TRACK}]
        ports: [{containerPort: 8080}]
        lifecycle: {preStop: {sleep: {seconds: 8}}}
        readinessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1, timeoutSeconds: 10}
---
`

// clientManifest orders from it without pause, also for some seconds after its pod was
// told to end. A probe of readiness keeps the first order until the proxy is there.
const clientManifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, namespace: NS}
spec:
  replicas: 1
  selector: {matchLabels: {app: NAME}}
  template:
    metadata:
      labels: {app: NAME, plumbline.dev/inject-mode: MODE}
      annotations: {plumbline.dev/local-ports: "8001=pay"}
    spec:
      terminationGracePeriodSeconds: 20
      securityContext: {runAsNonRoot: true, runAsUser: 65532}
      containers:
      - name: app
        image: docker.io/plumbline/shop:dev
        resources: {requests: {cpu: 10m, memory: 16Mi}}
        lifecycle: {preStop: {sleep: {seconds: 8}}}
        env:
        - {name: SHOP_VISITS, value: "$URL"}
        - {name: SHOP_VISIT_RATE, value: "$RATE"}
        - {name: SHOP_VISIT_USERS, value: "$USERS"}
        - {name: SHOP_VISIT_COOKIES, value: "$COOKIES"}
        - {name: SHOP_VISIT_HEADER, value: "$HEADER"}
        - {name: SHOP_CALL_RATE, value: "$BESIDES"}
        - {name: SHOP_SOCKET_RATE, value: "$BESIDES"}
        ports: [{containerPort: 8080}]
        readinessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1, timeoutSeconds: 10}
---
`

const releaseManifest = `
apiVersion: plumbline.dev/v1alpha1
kind: ABRelease
metadata: {name: pay, namespace: NS}
spec:
  serviceName: pay
  stable: stable
  variations:
  - {name: stable, workload: {kind: Deployment, name: pay-stable}}
  - {name: canary, workload: {kind: Deployment, name: pay-canary}}
  trafficSplit: SPLIT
`

// mesh is a namespace with proxies.
type mesh struct {
	*testing.T
	namespace string
}

// client is a Deployment that orders.
type client struct {
	name, mode, url string
	users           int
	cookies         bool
	header          string
	// rate of its orders in a second; 0 is ordersPerSecond.
	rate int
	// besides is whether it orders by gRPC and on WebSockets as well.
	besides bool
}

func (c client) manifest() string {
	besides := 0
	if c.besides {
		besides = besidesPerSecond
	}
	return strings.NewReplacer("NAME", c.name, "$BESIDES", fmt.Sprint(besides), "MODE", c.mode, "$RATE", fmt.Sprint(cmp.Or(c.rate, ordersPerSecond)), "$URL", c.url, "$USERS", fmt.Sprint(c.users),
		"$COOKIES", fmt.Sprint(c.cookies), "$HEADER", c.header).Replace(clientManifest)
}

// withoutProxy is the client as its pod is where nothing is injected.
func (c client) withoutProxy() string {
	return strings.Replace(c.manifest(), "plumbline.dev/inject-mode: ", "plumbline.dev/inject: disabled", 1)
}

// outside makes the client that orders through the gateway.
func (m *mesh) outside(besides bool) client {
	m.Helper()
	return m.throughGateway(client{besides: besides})
}

func (m *mesh) throughGateway(c client) client {
	m.Helper()
	c.name, c.url, c.header = "outside", throughGateway, "Host: "+m.namespace+".example.com"
	m.apply(c.withoutProxy())
	m.rolledOut(c.name)
	m.kubectl("rollout", "status", "deployment/plumbline-gateway", "-n", systemNamespace, "--timeout=90s")
	return c
}

func newMesh(t *testing.T, name string, clients ...client) *mesh {
	t.Helper()
	return newMeshOf(t, name, []string{"stable", "canary"}, clients...)
}

func versionManifest(track string) string { return strings.ReplaceAll(serverManifest, "TRACK", track) }

// newMeshOf some versions.
func newMeshOf(t *testing.T, name string, tracks []string, clients ...client) *mesh {
	t.Helper()
	m := &mesh{t, "e2e-mesh-" + name}
	t.Cleanup(m.remove)
	manifest := meshManifest
	for _, track := range tracks {
		manifest += versionManifest(track)
	}
	m.apply(manifest)
	for _, track := range tracks {
		m.rolledOut("pay-" + track)
	}
	for _, c := range clients {
		m.apply(c.manifest())
	}
	for _, c := range clients {
		m.rolledOut(c.name)
	}
	return m
}

func (m *mesh) remove() {
	removeNamespace(m.T, m.namespace,
		[]string{"get", "abreleases,deployments,pods,events", "-n", m.namespace, "-o", "wide"},
		[]string{"get", "abreleases", "-n", m.namespace, "-o", "yaml"},
		[]string{"logs", "-n", systemNamespace, "-l", "app.kubernetes.io/component=xds", "--tail=100", "--prefix"},
		[]string{"logs", "-n", m.namespace, "-l", "plumbline.dev/proxy", "-c", "plumbline-proxy", "--tail=50", "--prefix"},
	)
}

func (m *mesh) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

func (m *mesh) apply(manifest string) {
	m.Helper()
	m.must(cluster.Apply(m.Context(), strings.ReplaceAll(manifest, "NS", m.namespace)))
}

// kubectl runs as admin, in the mesh's namespace unless another one is given.
func (m *mesh) kubectl(args ...string) string {
	m.Helper()
	if !slices.Contains(args, "-n") {
		args = append(args, "-n", m.namespace)
	}
	out, err := cluster.Kubectl(m.Context(), args...)
	m.must(err)
	return out
}

func (m *mesh) rolledOut(deployments ...string) {
	m.Helper()
	for _, d := range deployments {
		m.kubectl("rollout", "status", "deployment/"+d, "--timeout=3m")
	}
}

// split applies a release and waits until every proxy has acknowledged it.
func (m *mesh) split(traffic string) *v1alpha1.ABRelease {
	m.Helper()
	m.apply(strings.ReplaceAll(releaseManifest, "SPLIT", traffic))
	generation := m.kubectl("get", "abrelease", "pay", "-o", "jsonpath={.metadata.generation}")
	return m.release("acknowledged by every proxy", func(r *v1alpha1.ABRelease) bool {
		return fmt.Sprint(r.Status.ObservedGeneration) == generation && acknowledged(r)
	})
}

func acknowledged(r *v1alpha1.ABRelease) bool {
	c := r.Status.Acknowledged
	return r.Status.Effective != nil && c != nil && c.Knowledge == v1alpha1.AcknowledgedProven &&
		c.Sequence == r.Status.Effective.Sequence && c.Proxies > 0
}

// release waits until the release is as wanted.
func (m *mesh) release(what string, holds func(*v1alpha1.ABRelease) bool) *v1alpha1.ABRelease {
	m.Helper()
	var last v1alpha1.ABRelease
	m.must(harness.Eventually(m.Context(), "the release is "+what, patience, func(ctx context.Context) (bool, string) {
		last = v1alpha1.ABRelease{}
		if err := cluster.Read(ctx, &last, m.namespace, "pay"); err != nil {
			return false, err.Error()
		}
		status, err := json.Marshal(last.Status)
		if err != nil {
			return false, err.Error()
		}
		return holds(&last), string(status)
	}))
	return &last
}
