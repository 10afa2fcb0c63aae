// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness"
)

// driftOnRealPods tells what only a whole cluster can tell: with kubectl, with the webhook
// between and with the controllers of Kubernetes. The rules of drift themselves are in
// test/integration/assess.
func driftOnRealPods(t *testing.T) {
	t.Parallel()
	for name, story := range map[string]func(*testing.T){
		"a trusted write authorizes only the paths that it changed": onlyChangedPaths,
		"concurrent writers are each named":                         concurrentWriters,
		"an undo names the human and not the replayed writer":       undone,
		"a deletion counts by its actor":                            deletions,
		"an application that CI uninstalls with Helm retires":       uninstalledByHelm,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story(t)
		})
	}
}

func onlyChangedPaths(t *testing.T) {
	s := newScope(t, "paths")
	s.deploy()
	t.Run("the plugin reads what the assessor wrote", func(t *testing.T) { s.in(t).pluginReads() })
	out := s.as("alice", "set", "env", "deployment/web", "DEBUG=1")
	if !strings.Contains(out, "Warning:") {
		t.Errorf("a foreign write under mode Warn should warn its writer, kubectl printed:\n%s", out)
	}
	s.awaitFinding("[name=DEBUG]", "alice")

	_, err := s.ci.Kubectl(t.Context(), "set", "image", "deployment/web", "app="+otherImage, "-n", s.namespace)
	s.must(err)
	b := s.await("the image authorized and the variable still drift", func(b *v1alpha1.Baseline) bool {
		_, image := findingAt(b, "/image")
		_, env := findingAt(b, "[name=DEBUG]")
		return b.Spec.Authorized.Number == 2 && env && !image
	})
	if f, _ := findingAt(b, "[name=DEBUG]"); f.Actor.User != "alice" {
		t.Errorf("the variable's actor is %q, want alice", f.Actor.User)
	}
	if b.Status.Severity == nil || len(b.Status.Severity.Factors) != 5 {
		t.Errorf("severity is %+v, want a level with its five factors", b.Status.Severity)
	}
	if out := s.kubectl("plumbline", "accept", "--by", "alice", "--since", "1h", "--yes", "--timeout", patience.String()); strings.Count(out, "accepted") != 1 {
		t.Errorf("accept in bulk printed:\n%s", out)
	}
	s.await("accepted", func(b *v1alpha1.Baseline) bool { return inSync(b) && b.Spec.Authorized.Number == 3 })
}

func (s *scope) pluginReads() {
	if out := s.kubectl("plumbline", "status", "--all"); !strings.Contains(out, "InSync") {
		s.Errorf("status printed:\n%s", out)
	}
	if out := s.kubectl("plumbline", "history", "deployment/web"); !strings.Contains(out, "system:serviceaccount:"+s.namespace+":ci") {
		s.Errorf("history does not name the CI:\n%s", out)
	}
	hash := strings.TrimSpace(s.kubectl("get", "baseline", "deployments.apps.web", "-o", "jsonpath={.status.observed.fullHash}"))
	stamp := strings.TrimSpace(s.kubectl("get", "deployment/web", "-o", `jsonpath={.metadata.annotations.plumbline\.dev/spec-hash}`))
	if out := s.kubectl("plumbline", "hash", "deployment/web"); !strings.Contains(out, hash) || hash == "" || hash != stamp {
		s.Errorf("hash printed %q, the assessor observed %q, admission stamped %q: want one and the same", out, hash, stamp)
	}
}

// concurrentWriters: the API server retries a PATCH that meets another write, so one
// write causes several reviews and reviews of different writers interleave.
func concurrentWriters(t *testing.T) {
	s := newScope(t, "concurrent")
	s.deploy()
	const each = 6
	var group errgroup.Group
	for _, user := range []string{"alice", "bob"} {
		for i := range each {
			group.Go(func() error {
				// kubectl edit and apply retry by themselves; a strategic patch is retried by the API server.
				patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"app","env":[{"name":"%s_%d","value":"1"}]}]}}}}`, strings.ToUpper(user), i)
				_, err := cluster.Kubectl(t.Context(), "patch", "deployment/web", "-n", s.namespace, "--as", user, "-p", patch)
				return err
			})
		}
	}
	s.must(group.Wait())
	b := s.await("a finding for every variable", func(b *v1alpha1.Baseline) bool { return len(b.Status.Findings) == 2*each })
	for _, user := range []string{"alice", "bob"} {
		for i := range each {
			name := fmt.Sprintf("[name=%s_%d]", strings.ToUpper(user), i)
			if f, ok := findingAt(b, name); !ok || f.Actor.User != user {
				t.Errorf("finding at %s is by %q, want %s", name, f.Actor.User, user)
			}
		}
	}
}

func undone(t *testing.T) {
	s := newScope(t, "undo")
	s.deploy()
	_, err := s.ci.Kubectl(t.Context(), "set", "image", "deployment/web", "app="+otherImage, "-n", s.namespace)
	s.must(err)
	s.await("version two authorized", func(b *v1alpha1.Baseline) bool { return inSync(b) && b.Spec.Authorized.Number == 2 })
	s.kubectl("rollout", "status", "deployment/web", "--timeout=60s")

	s.as("bob", "rollout", "undo", "deployment/web")
	f := s.awaitFinding("/image", "bob")
	if f.Actor.Source != v1alpha1.ActorSourceWriterStamp {
		t.Errorf("the actor is known from %s, want the writer stamp", f.Actor.Source)
	}
}

// deletions are a person's, CI's, the garbage collector's and that of the namespace.
func deletions(t *testing.T) {
	s := newScope(t, "delete")
	// The other one is there until the namespace goes.
	s.must(s.ci.Apply(t.Context(), strings.NewReplacer("name: web,", "name: api,", "app: web", "app: api").Replace(workloadManifest), "-n", s.namespace))
	s.deploy()
	s.kubectl("wait", "--for=jsonpath={.status.state}=InSync", "baseline/deployments.apps.api", "--timeout=60s")
	s.as("alice", "delete", "deployment/web")
	b := s.await("missing, by alice", func(b *v1alpha1.Baseline) bool {
		return b.Status.State == v1alpha1.StateMissing && len(b.Status.Findings) == 1 && b.Status.Findings[0].Actor.User == "alice"
	})
	if b.Status.RetirementTime != nil {
		t.Error("a foreign delete must not retire the Baseline")
	}
	t.Run("the same object recreated by CI is in sync again", func(t *testing.T) { s.in(t).deploy() })
	t.Run("garbage collection retires", func(t *testing.T) { s.in(t).collected() })
	t.Run("the deletion of the namespace raises no alarm", func(t *testing.T) { s.in(t).namespaceDeleted() })
}

// collected makes a ConfigMap the owner, and deletes that.
func (s *scope) collected() {
	s.kubectl("create", "configmap", "owner")
	uid := s.kubectl("get", "configmap/owner", "-o", "jsonpath={.metadata.uid}")
	_, err := s.ci.Kubectl(s.Context(), "patch", "deployment/web", "-n", s.namespace, "--type=merge",
		"-p", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":"`+uid+`"}]}}`)
	s.must(err)
	s.as("alice", "delete", "configmap/owner")
	s.await("retired", func(b *v1alpha1.Baseline) bool { return b.Status.RetirementTime != nil })
}

func (s *scope) namespaceDeleted() {
	first, stop := s.watchStates("deployments.apps.api")
	_, err := cluster.Kubectl(s.Context(), "delete", "namespace", s.namespace, "--wait=true", "--timeout=90s")
	s.must(err)
	if states := append([]string{first}, stop()...); !slices.Contains(states, "InSync") || slices.Contains(states, "Missing") {
		s.Errorf("states seen while the namespace was deleted: %q, want InSync and never Missing", states)
	}
}

// watchStates watches the states of a Baseline. It returns when the first has been seen;
// stop gives those that were seen after it.
func (s *scope) watchStates(baseline string) (first string, stop func() []string) {
	s.Helper()
	watch, cancel := context.WithCancel(s.Context())
	s.Cleanup(cancel)
	out, in := io.Pipe()
	go func() {
		// It ends with an error when it is stopped; what it printed is what counts.
		_, err := cluster.Run(watch, []string{"kubectl", "get", "baseline", baseline, "-n", s.namespace, "--watch",
			"-o", `jsonpath={.status.state}{"\n"}`}, harness.WithStdout(in))
		_ = in.CloseWithError(err)
	}()
	lines, late := bufio.NewScanner(out), time.AfterFunc(patience, cancel)
	if !lines.Scan() {
		s.Fatalf("no state was seen: %v", lines.Err())
	}
	late.Stop()
	first = lines.Text()
	rest := make(chan []string, 1)
	go func() {
		var seen []string
		for lines.Scan() {
			seen = append(seen, lines.Text())
		}
		rest <- seen
	}()
	return first, func() []string { cancel(); return <-rest }
}

func uninstalledByHelm(t *testing.T) {
	s := newScope(t, "helm")
	chart := t.TempDir()
	s.must(os.MkdirAll(chart+"/templates", 0o755))
	s.must(os.WriteFile(chart+"/Chart.yaml", []byte("apiVersion: v2\nname: web\nversion: 0.1.0\n"), 0o600))
	s.must(os.WriteFile(chart+"/templates/web.yaml", []byte(workloadManifest), 0o600))
	_, err := s.ci.Run(t.Context(), []string{"helm", "install", "web", chart, "-n", s.namespace, "--wait", "--timeout=90s"})
	s.must(err)
	s.await("in sync", inSync)
	_, err = s.ci.Run(t.Context(), []string{"helm", "uninstall", "web", "-n", s.namespace, "--wait"})
	s.must(err)
	s.await("retired", func(b *v1alpha1.Baseline) bool { return b.Status.RetirementTime != nil })
}
