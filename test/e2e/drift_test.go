// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness"
)

func TestATrustedWriteAuthorisesOnlyThePathsItChanged(t *testing.T) {
	s := newScope(t, "paths")
	s.deploy()
	out := s.as("alice", "set", "env", "deployment/web", "DEBUG=1")
	if !strings.Contains(out, "Warning:") {
		t.Errorf("a foreign write under mode Warn should warn its writer, kubectl printed:\n%s", out)
	}
	s.awaitFinding("[name=DEBUG]", "alice")

	_, err := s.ci.Kubectl(t.Context(), "set", "image", "deployment/web", "app=docker.io/plumbline/shop:hotfix", "-n", s.namespace)
	s.must(err)
	b := s.await("the image authorised and the variable still drift", func(b *v1alpha1.Baseline) bool {
		_, image := findingAt(b, "/image")
		_, env := findingAt(b, "[name=DEBUG]")
		return b.Spec.Authorised.Number == 2 && env && !image
	})
	if f, _ := findingAt(b, "[name=DEBUG]"); f.Actor.User != "alice" {
		t.Errorf("the variable's actor is %q, want alice", f.Actor.User)
	}
	if b.Status.Severity == nil || len(b.Status.Severity.Factors) != 5 {
		t.Errorf("severity is %+v, want a level with its five factors", b.Status.Severity)
	}
}

// The API server retries a PATCH that meets another write, so one write causes
// several reviews and reviews of different writers interleave.
func TestConcurrentWritersAreEachNamed(t *testing.T) {
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

func TestThePluginReadsWhatTheAssessorWrote(t *testing.T) {
	s := newScope(t, "plugin")
	s.deploy()
	if out := s.kubectl("plumbline", "status"); !strings.Contains(out, "InSync") {
		t.Errorf("status printed:\n%s", out)
	}
	if out := s.kubectl("plumbline", "history", "deployment/web"); !strings.Contains(out, "system:serviceaccount:"+s.namespace+":ci") {
		t.Errorf("history does not name the CI:\n%s", out)
	}
	hash := strings.TrimSpace(s.kubectl("get", "baseline", "deployments.apps.web", "-o", "jsonpath={.status.observed.fullHash}"))
	stamp := strings.TrimSpace(s.kubectl("get", "deployment/web", "-o", `jsonpath={.metadata.annotations.plumbline\.dev/spec-hash}`))
	if out := s.kubectl("plumbline", "hash", "deployment/web"); !strings.Contains(out, hash) || hash == "" || hash != stamp {
		t.Errorf("hash printed %q, the assessor observed %q, admission stamped %q: want one and the same", out, hash, stamp)
	}
}

func TestRolloutUndoByAHumanNamesTheHumanAndNotTheReplayedWriter(t *testing.T) {
	s := newScope(t, "undo")
	s.deploy()
	_, err := s.ci.Kubectl(t.Context(), "set", "image", "deployment/web", "app=docker.io/plumbline/shop:hotfix", "-n", s.namespace)
	s.must(err)
	s.await("version two authorised", func(b *v1alpha1.Baseline) bool { return inSync(b) && b.Spec.Authorised.Number == 2 })
	s.kubectl("rollout", "status", "deployment/web", "--timeout=60s")

	s.as("bob", "rollout", "undo", "deployment/web")
	f := s.awaitFinding("/image", "bob")
	if f.Actor.Source != v1alpha1.ActorSourceWriterStamp {
		t.Errorf("the actor is known from %s, want the writer stamp", f.Actor.Source)
	}
}

func TestRolloutRestartIsBenign(t *testing.T) {
	s := newScope(t, "restart")
	s.deploy()
	s.as("alice", "rollout", "restart", "deployment/web")
	generation := s.kubectl("get", "deployment/web", "-o", "jsonpath={.metadata.generation}")
	s.await("in sync at the restarted generation", func(b *v1alpha1.Baseline) bool {
		return inSync(b) && fmt.Sprint(b.Status.Observed.Generation) == generation
	})
}

func TestAForeignCreateIsUnexpectedUntilAccepted(t *testing.T) {
	s := newScope(t, "create")
	s.must(cluster.Apply(t.Context(), workloadManifest, "-n", s.namespace, "--as", "alice"))
	b := s.await("unexpected", func(b *v1alpha1.Baseline) bool { return b.Status.State == v1alpha1.StateDrifted })
	if b.Spec.Authorised != nil {
		t.Errorf("nobody trusted created it, yet %+v is authorised", b.Spec.Authorised)
	}
	if f := b.Status.Findings[0]; f.Class != v1alpha1.ClassObjectUnexpected || f.Actor.User != "alice" {
		t.Errorf("finding is %s by %q, want ObjectUnexpected by alice", f.Class, f.Actor.User)
	}
	s.kubectl("plumbline", "accept", "deployment/web", "--reason", "known")
	s.await("accepted", func(b *v1alpha1.Baseline) bool {
		return inSync(b) && b.Spec.Authorised.Origin == v1alpha1.OriginCreated && b.Spec.Accept == nil
	})
}

func TestDeletionHasAnActor(t *testing.T) {
	s := newScope(t, "delete")
	s.deploy()
	s.as("alice", "delete", "deployment/web")
	b := s.await("missing, by alice", func(b *v1alpha1.Baseline) bool {
		return b.Status.State == v1alpha1.StateMissing && len(b.Status.Findings) == 1 && b.Status.Findings[0].Actor.User == "alice"
	})
	if b.Status.RetiredAt != nil {
		t.Error("a foreign delete must not retire the Baseline")
	}
	t.Run("the same object recreated by CI is in sync again", func(t *testing.T) {
		s.must(s.ci.Apply(t.Context(), workloadManifest, "-n", s.namespace))
		s.await("in sync", inSync)
	})
	t.Run("deleted by CI it is retired", func(t *testing.T) {
		_, err := s.ci.Kubectl(t.Context(), "delete", "deployment/web", "-n", s.namespace)
		s.must(err)
		s.await("retired", func(b *v1alpha1.Baseline) bool { return b.Status.RetiredAt != nil })
	})
}

func TestReplaceForceByAHumanIsComparedWithTheOldBaseline(t *testing.T) {
	s := newScope(t, "replace")
	s.deploy()
	before := s.await("in sync", inSync)
	manifest := strings.Replace(workloadManifest, "replicas: 1", "replicas: 2", 1)
	s.must(runWithStdin(t, cluster, manifest, "kubectl", "replace", "--force", "-f", "-", "-n", s.namespace, "--as", "alice"))
	b := s.await("drift on replicas under a new uid", func(b *v1alpha1.Baseline) bool {
		_, ok := findingAt(b, "/spec/replicas")
		return ok && b.Status.Observed.UID != before.Status.Observed.UID
	})
	if b.Spec.Authorised.Number != before.Spec.Authorised.Number {
		t.Errorf("a foreign replace moved the authorised state from %d to %d", before.Spec.Authorised.Number, b.Spec.Authorised.Number)
	}
}

func TestGarbageCollectionRetires(t *testing.T) {
	s := newScope(t, "gc")
	s.deploy()
	s.kubectl("create", "configmap", "owner")
	uid := s.kubectl("get", "configmap/owner", "-o", "jsonpath={.metadata.uid}")
	_, err := s.ci.Kubectl(t.Context(), "patch", "deployment/web", "-n", s.namespace, "--type=merge",
		"-p", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":"`+uid+`"}]}}`)
	s.must(err)
	s.as("alice", "delete", "configmap/owner")
	s.await("retired", func(b *v1alpha1.Baseline) bool { return b.Status.RetiredAt != nil })
}

func TestAnAutoscalerMovesReplicasFiftyTimesWhileAHumanEdits(t *testing.T) {
	s := newScope(t, "hpa")
	s.deploy()
	const autoscaler = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
	for i := range 50 {
		s.as(autoscaler, "scale", "deployment/web", fmt.Sprintf("--replicas=%d", 1+i%3))
		if i%10 == 5 {
			s.as("alice", "set", "env", "deployment/web", fmt.Sprintf("STEP=%d", i))
		}
	}
	b := s.await("one finding, replicas masked", func(b *v1alpha1.Baseline) bool {
		return len(b.Status.Findings) == 1 && len(b.Status.Masks) == 1 && b.Status.Masks[0].Value == "2" &&
			strings.Contains(b.Status.Findings[0].After, "45")
	})
	if f := b.Status.Findings[0]; !strings.Contains(f.Path, "[name=STEP]") || f.Actor.User != "alice" {
		t.Errorf("finding %s by %s, want STEP by alice", f.Path, f.Actor.User)
	}
	if b.Spec.Authorised.Number != 1 {
		t.Errorf("authorised state number %d, want 1: neither writer is trusted", b.Spec.Authorised.Number)
	}
}

func TestNamespaceDeletionRaisesNoAlarm(t *testing.T) {
	s := newScope(t, "nsdelete")
	s.deploy()
	first, stop := s.watchStates()
	_, err := cluster.Kubectl(t.Context(), "delete", "namespace", s.namespace, "--wait=true", "--timeout=90s")
	s.must(err)
	if states := append([]string{first}, stop()...); !slices.Contains(states, "InSync") || slices.Contains(states, "Missing") {
		t.Errorf("states seen while the namespace was deleted: %q, want InSync and never Missing", states)
	}
}

// watchStates watches the states of Baselines. It returns when the first has been seen;
// stop gives those that were seen after it.
func (s *scope) watchStates() (first string, stop func() []string) {
	s.Helper()
	watch, cancel := context.WithCancel(s.Context())
	s.Cleanup(cancel)
	out, in := io.Pipe()
	go func() {
		// It ends with an error when it is stopped; what it printed is what counts.
		_, err := cluster.Run(watch, []string{"kubectl", "get", "baselines", "-n", s.namespace, "--watch",
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

func TestAcceptInBulkByWriter(t *testing.T) {
	s := newScope(t, "bulk")
	s.deploy()
	s.must(s.ci.Apply(t.Context(), strings.NewReplacer("name: web,", "name: api,", "app: web", "app: api").Replace(workloadManifest), "-n", s.namespace))
	s.as("alice", "set", "env", "deployment/web", "A=1")
	s.as("alice", "set", "env", "deployment/api", "A=1")
	s.awaitFinding("[name=A]", "alice")
	s.kubectl("wait", "--for=jsonpath={.status.state}=Drifted", "baseline/deployments.apps.api", "--timeout=60s")
	out := s.kubectl("plumbline", "accept", "--by", "alice", "--since", "1h", "--yes")
	if strings.Count(out, "accepted") < 2 {
		t.Errorf("accept in bulk printed:\n%s", out)
	}
	s.await("in sync", inSync)
	s.kubectl("wait", "--for=jsonpath={.status.state}=InSync", "baseline/deployments.apps.api", "--timeout=60s")
}
