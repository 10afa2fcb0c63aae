// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness"
)

const (
	systemNamespace = "plumbline-system"
	// patience bounds a wait for pods: nine that start beside other tests took over 90 s on two cores.
	patience = 3 * time.Minute
)

var (
	// clusterName is never the demo's; E2E_NAME lets two checkouts test at once.
	clusterName = cmp.Or(os.Getenv("E2E_NAME"), "e2e")
	// cluster is the admin's way in; every test has a namespace of its own.
	cluster *harness.Cluster
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx := context.Background()
	if err := os.Chdir("../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer harness.Remove(ctx, clusterName)
	var err error
	if cluster, err = harness.Install(ctx, clusterName); err != nil {
		fmt.Fprintln(os.Stderr, "setting up:", err)
		return 1
	}
	// Tests that run beside each other wait for pods more than for processors; three of
	// them have clients that order all the time.
	flag.Parse()
	if err := flag.Set("test.parallel", "5"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := awaitRemovals(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// scope is one test's namespace with a guard, a CI that it trusts and two
// humans with the built-in role edit that it does not.
type scope struct {
	*testing.T
	namespace string
	ci        *harness.Cluster
}

const scopeManifest = `
apiVersion: v1
kind: Namespace
metadata: {name: NS}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: ci, namespace: NS}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: edit, namespace: NS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects:
- {kind: ServiceAccount, name: ci, namespace: NS}
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: alice}
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: bob}
# kubectl scale reads the Deployment first, which the autoscaler's own role does not allow.
- {kind: ServiceAccount, name: horizontal-pod-autoscaler, namespace: kube-system}
---
apiVersion: plumbline.dev/v1alpha1
kind: SpecGuard
metadata: {name: guard, namespace: NS}
spec:
  resources: [{apiVersion: apps/v1, kind: Deployment}]
  mode: Warn
  trustedWriters: {serviceAccounts: [{namespace: NS, name: ci}]}
  expectedWriters:
  - name: autoscaler
    writers: {serviceAccounts: [{namespace: kube-system, name: horizontal-pod-autoscaler}]}
    paths: [/spec/replicas]
`

const workloadManifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: app
        image: docker.io/plumbline/shop:dev
        resources: {requests: {cpu: 10m, memory: 16Mi}}
        env: [{name: SHOP_NAME, value: web}]
        ports: [{containerPort: 8080}]
        readinessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1}
`

func newScope(t *testing.T, name string) *scope {
	t.Helper()
	s := &scope{T: t, namespace: "e2e-" + name}
	s.must(cluster.Apply(t.Context(), strings.ReplaceAll(scopeManifest, "NS", s.namespace)))
	s.kubectl("wait", "--for=condition=Ready", "specguard/guard", "--timeout=60s")
	var err error
	s.ci, err = cluster.As(t.Context(), s.namespace, "ci", t.TempDir())
	s.must(err)
	t.Cleanup(func() {
		removeNamespace(t, s.namespace, []string{"get", "baselines,deployments,pods,events", "-n", s.namespace, "-o", "wide"})
	})
	return s
}

// removal bounds the end of a test's objects, on a node where other tests start pods.
const removal = 5 * time.Minute

// removed are the namespaces that are being removed.
var removed struct {
	sync.Mutex
	names []string
}

// removeNamespace keeps the state after a failure, and begins to remove the namespace of
// a test. The test does not wait for the end, which takes minutes on a busy machine; see
// [awaitRemovals].
func removeNamespace(t *testing.T, namespace string, looks ...[]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), removal)
	defer cancel()
	keepState(ctx, t, namespace, looks...)
	if _, err := cluster.Kubectl(ctx, "delete", "namespace", namespace, "--ignore-not-found", "--wait=false"); err != nil {
		t.Errorf("removing the namespace: %v", err)
		return
	}
	removed.Lock()
	defer removed.Unlock()
	removed.names = append(removed.names, namespace)
}

// awaitRemovals waits until each namespace that a test removed is gone: nothing of
// Plumbline may keep a namespace from its end.
func awaitRemovals(ctx context.Context) error {
	if len(removed.names) == 0 {
		return nil
	}
	_, err := cluster.Kubectl(ctx, append([]string{"wait", "namespace", "--for=delete", "--timeout=" + removal.String()}, removed.names...)...)
	if err == nil {
		return nil
	}
	conditions, getErr := cluster.Kubectl(ctx, "get", "namespaces", "-o", `jsonpath={range .items[?(@.metadata.deletionTimestamp)]}{.metadata.name}{"\n"}{range .status.conditions[*]}  {.type} {.status}: {.message}{"\n"}{end}{end}`)
	pods, podsErr := cluster.Kubectl(ctx, "get", "pods", "-A", "-o", "wide")
	return errors.Join(fmt.Errorf("waiting for the end of the tests' namespaces: %w\n%s\n%s", err, conditions, pods), getErr, podsErr)
}

// keepState writes what kubectl prints into a file, if the test has failed. The log of a
// run would hide the reason of the failure among it.
func keepState(ctx context.Context, t *testing.T, name string, commands ...[]string) {
	t.Helper()
	if !t.Failed() {
		return
	}
	var b strings.Builder
	for _, args := range commands {
		out, err := cluster.Kubectl(ctx, args...)
		fmt.Fprintf(&b, "%s:\n%s\n", strings.Join(args, " "), out)
		if err != nil {
			fmt.Fprintf(&b, "%v\n", err)
		}
	}
	file := filepath.Join("bin", "e2e", name+".txt")
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(b.String()), 0o600)); err != nil {
		t.Errorf("keeping the state at the failure: %v", err)
		return
	}
	t.Logf("the state at the failure is in %s", file)
}

// in is the scope within a test of its own, which fails alone.
func (s *scope) in(t *testing.T) *scope {
	inner := *s
	inner.T = t
	return &inner
}

// deploy has the CI create the workload, and waits until it is authorized.
func (s *scope) deploy() {
	s.Helper()
	s.must(s.ci.Apply(s.Context(), workloadManifest, "-n", s.namespace))
	s.await("in sync", inSync)
}

func (s *scope) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// kubectl runs as admin in the namespace.
func (s *scope) kubectl(args ...string) string {
	s.Helper()
	out, err := cluster.Kubectl(s.Context(), append(args, "-n", s.namespace)...)
	s.must(err)
	return out
}

// as runs kubectl as a human and returns everything it printed.
func (s *scope) as(user string, args ...string) string {
	s.Helper()
	result, err := cluster.Run(s.Context(), append(append([]string{"kubectl"}, args...), "-n", s.namespace, "--as", user))
	s.must(err)
	return result.Output()
}

// baseline reads the workload's Baseline.
func (s *scope) baseline(ctx context.Context) (*v1alpha1.Baseline, error) {
	var b v1alpha1.Baseline
	err := cluster.Read(ctx, &b, s.namespace, "deployments.apps.web")
	return &b, err
}

// await waits until the workload's Baseline is as wanted.
func (s *scope) await(what string, holds func(*v1alpha1.Baseline) bool) *v1alpha1.Baseline {
	s.Helper()
	var last *v1alpha1.Baseline
	s.must(harness.Eventually(s.Context(), what, patience, func(ctx context.Context) (bool, string) {
		b, err := s.baseline(ctx)
		if err != nil {
			return false, err.Error()
		}
		last = b
		return holds(b), fmt.Sprintf("%s, findings %+v, masks %+v, authorized %+v", b.Status.State, b.Status.Findings, b.Status.Masks, b.Spec.Authorized)
	}))
	return last
}

func (s *scope) awaitFinding(path, user string) v1alpha1.Finding {
	s.Helper()
	var found v1alpha1.Finding
	s.await("a finding at "+path+" by "+user, func(b *v1alpha1.Baseline) bool {
		f, ok := findingAt(b, path)
		found = f
		return ok && f.Actor.User == user
	})
	return found
}

func inSync(b *v1alpha1.Baseline) bool { return b.Status.State == v1alpha1.StateInSync }

func findingAt(b *v1alpha1.Baseline, path string) (v1alpha1.Finding, bool) {
	for _, f := range b.Status.Findings {
		if strings.Contains(f.Path, path) {
			return f, true
		}
	}
	return v1alpha1.Finding{}, false
}
