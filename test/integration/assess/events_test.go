// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness/child"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// kubectlEvents is what `kubectl events --for` prints of an object, line by line.
func (w *world) kubectlEvents(file, object string) ([]string, error) {
	binary := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl")
	cmd := child.Bind(exec.CommandContext(w.Ctx(), binary, "--kubeconfig", file, "-n", w.namespace, "events", "--for", object, "--no-headers"))
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("running %s: %w", cmd, err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n"), nil
}

func (w *world) kubeconfigFile() string {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "kubeconfig")
	w.Must(os.WriteFile(path, kubeconfig, 0o600))
	return path
}

// untilTold waits until kubectl prints a line with all the words.
func (w *world) untilTold(file, object string, words ...string) {
	w.t.Helper()
	w.Eventually(fmt.Sprintf("kubectl events --for %s shows %q", object, words), func() error {
		lines, err := w.kubectlEvents(file, object)
		if err != nil {
			return err
		}
		told := slices.ContainsFunc(lines, func(line string) bool {
			return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(line, word) })
		})
		if !told {
			return fmt.Errorf("it shows\n%s", strings.Join(lines, "\n"))
		}
		return nil
	})
}

// TestPeopleAreToldByKubectl: drift and its end show at the object, and nothing about one
// object shows at another.
func TestPeopleAreToldByKubectl(t *testing.T) {
	rotation.Share(t, 3)
	w := newWorld(t)
	start(t)
	w.UnderGuard()
	for _, name := range []string{"web", "other"} {
		w.Deploy(ci, name)
		w.UntilIs(name, "InSync")
	}
	w.SetImage(alice, "web", "registry.example/evil:1")
	w.Until("web", "it drifts", isState(v1alpha1.StateDrifted))
	w.SetImage(bob, "web", "registry.example/shop:1")
	w.UntilIs("web", "InSync")
	w.SetEnv(bob, "web", "DEBUG", "1")
	w.Until("web", "it drifts again", isState(v1alpha1.StateDrifted))
	file := w.kubeconfigFile()
	w.untilTold(file, "deployment/web", "Warning", string(specguard.ReasonDriftDetected), "[name=app]/image", alice)
	w.untilTold(file, "deployment/web", "Normal", string(specguard.ReasonDriftResolved))
	// The second drift is told as such, not counted under the first one's text.
	w.untilTold(file, "deployment/web", "Warning", string(specguard.ReasonDriftDetected), "[name=app]/env", bob)
	lines, err := w.kubectlEvents(file, "deployment/other")
	w.Must(err)
	if slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, "Drift") }) {
		t.Errorf("another object is said to drift:\n%s", strings.Join(lines, "\n"))
	}
}

func isState(want v1alpha1.DriftState) func(*v1alpha1.Baseline) error {
	return func(b *v1alpha1.Baseline) error {
		if b.Status.State != want {
			return fmt.Errorf("it is %s", b.Status.State)
		}
		return nil
	}
}

// TestAFightIsToldWithItsFighters has a person and CI undo each other's image,
// while an autoscaler does its work and has no part in it.
func TestAFightIsToldWithItsFighters(t *testing.T) {
	w := newWorld(t)
	start(t)
	w.UnderGuard()
	w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
	for range 3 {
		w.SetImage(alice, "web", "registry.example/evil:1")
		w.Until("web", "it drifts", isState(v1alpha1.StateDrifted))
		w.Patch(hpa, "web", `{"spec":{"replicas":5}}`)
		w.SetImage(ci, "web", "registry.example/shop:1")
		w.Until("web", "it is in sync", isState(v1alpha1.StateInSync))
		w.Patch(hpa, "web", `{"spec":{"replicas":4}}`)
	}
	b := w.Until("web", "the fight is recognized", func(b *v1alpha1.Baseline) error {
		c := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionDegraded)
		if c == nil || c.Status != metav1.ConditionTrue || b.Status.Contention == nil {
			return fmt.Errorf("Degraded is %+v, contention %+v", c, b.Status.Contention)
		}
		return nil
	})
	if with := slices.Sorted(slices.Values(b.Status.Contention.With)); !slices.Equal(with, []string{alice, ci}) {
		t.Errorf("the fighters are %q", with)
	}
	w.Eventually("the fight is told at the object", func() error {
		told, err := w.events("Deployment", "web", specguard.ReasonContended)
		if err != nil {
			return err
		}
		if len(told) != 1 || told[0].Type != string(specguard.EventWarning) || !strings.Contains(told[0].Note, alice) {
			return fmt.Errorf("%d events: %+v", len(told), told)
		}
		return nil
	})
	if other, err := w.Baseline("web"); err != nil || other.Status.State != v1alpha1.StateInSync {
		t.Errorf("the fight hides the state: %v, %v", other.Status.State, err)
	}
}

// TestOneWriterIsNoFight: an autoscaler that moves to and fro by itself undoes
// nobody.
func TestOneWriterIsNoFight(t *testing.T) {
	w := newWorld(t)
	start(t)
	w.UnderGuard()
	w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
	for i := range 12 {
		w.Patch(hpa, "web", fmt.Sprintf(`{"spec":{"replicas":%d}}`, 3+i%2))
	}
	w.stays("web", "InSync [autoscaler /spec/replicas]")
	b, err := w.Baseline("web")
	w.Must(err)
	if b.Status.Contention != nil {
		t.Errorf("an autoscaler fights with %q", b.Status.Contention.With)
	}
}

// events lists what is told about an object for one reason, oldest first.
func (w *world) events(kind, name string, reason specguard.EventReason) ([]eventsv1.Event, error) {
	var list eventsv1.EventList
	if err := admin.List(w.Ctx(), &list, client.InNamespace(w.namespace)); err != nil {
		return nil, err
	}
	told := slices.DeleteFunc(list.Items, func(e eventsv1.Event) bool {
		return e.Regarding.Kind != kind || e.Regarding.Name != name || e.Reason != string(reason)
	})
	slices.SortFunc(told, func(a, b eventsv1.Event) int { return cmp.Compare(a.EventTime.UnixNano(), b.EventTime.UnixNano()) })
	return told, nil
}
