// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testingclock "k8s.io/utils/clock/testing"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/guards"
	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/internal/lag"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness/fakeclient"
)

var (
	epoch       = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
)

func mapper() *meta.DefaultRESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(deployments, meta.RESTScopeNamespace)
	m.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}, meta.RESTScopeNamespace)
	m.Add(schema.GroupVersionKind{Version: "v1", Kind: "Node"}, meta.RESTScopeRoot)
	return m
}

func specGuard(name string, resources ...v1alpha1.GuardedResource) v1alpha1.SpecGuard {
	return v1alpha1.SpecGuard{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "u", Generation: 1, CreationTimestamp: metav1.NewTime(epoch)},
		Spec:       v1alpha1.GuardSpec{Resources: resources},
	}
}

func kind(apiVersion, kind string) v1alpha1.GuardedResource {
	return v1alpha1.GuardedResource{APIVersion: apiVersion, Kind: kind}
}

// kinds is the health of all kinds.
type kinds kube.Health

func (k kinds) Health(schema.GroupVersionKind) kube.Health { return kube.Health(k) }

// Each count lists all Baselines, so a kind that a tenant names must not cause a count
// twice a second for as long as the kind cannot be read.
func TestAKindThatCannotBeReadIsNoReasonToCountWithoutPause(t *testing.T) {
	tests := map[string]struct {
		kinds kinds
		want  time.Duration
	}{
		"all kinds are read":        {kinds{Synced: true}, countAgain},
		"a kind is being listed":    {kinds{}, settleTime},
		"a kind may not be read":    {kinds{Failure: errors.New("forbidden")}, countUnreadable},
		"a kind fails after a list": {kinds{Synced: true, Failure: errors.New("gone")}, countUnreadable},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			status := &Status{Kinds: tc.kinds, Enforcement: &Enforcement{Clock: testingclock.NewFakePassiveClock(epoch)}}
			snapshot := &guards.Snapshot{Resources: map[schema.GroupVersionKind]kube.Resource{{Version: "v1", Kind: "ConfigMap"}: {}}}
			if got := status.again(snapshot); got != tc.want {
				t.Errorf("the next count is in %s, want %s", got, tc.want)
			}
		})
	}
}

// A repair moves the number of drifted objects there and back. What else changes is stored at once.
func TestTheNumberOfDriftedObjectsIsStoredASecondLater(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(epoch)
	types := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(types); err != nil {
		t.Fatal(err)
	}
	guard := specGuard("web", kind("apps/v1", "Deployment"))
	client := fakeclient.NewBuilder(types).WithObjects(&guard).WithStatusSubresource(&guard).Build()
	c := &Status{Client: client, Clock: clock, Kinds: kinds{Synced: true}}
	ref := specguard.GuardRef{Namespace: "shop", Name: "web"}
	snapshot := &guards.Snapshot{Refs: map[specguard.GuardRef]time.Time{ref: epoch}}
	count := func(objects, drifted int32) (stored v1alpha1.GuardStatus, again time.Duration) {
		t.Helper()
		counted := round{again: countAgain}
		counts := map[specguard.GuardRef]guards.Tally{ref: {Objects: objects, Drifted: drifted}}
		if err := c.writeGuards(t.Context(), snapshot, counts, &counted); err != nil {
			t.Fatal(err)
		}
		var got v1alpha1.SpecGuard
		if err := client.Get(t.Context(), ctrlclient.ObjectKeyFromObject(&guard), &got); err != nil {
			t.Fatal(err)
		}
		return got.Status, counted.again
	}
	steps := []struct {
		name             string
		after            time.Duration
		objects, drifted int32
		wantDrifted      int32
		wantObjects      int32
		wantAgain        time.Duration
	}{
		{"the first count is stored", 0, 10, 0, 0, 10, countAgain},
		{"a drift waits", time.Second, 10, 1, 0, 10, lag.Most},
		{"another one waits no longer", lag.Most / 4, 10, 2, 0, 10, lag.Most * 3 / 4},
		{"a repair leaves nothing to store", lag.Most / 4, 10, 0, 0, 10, countAgain},
		{"the next drift waits for a second of its own", lag.Most, 10, 3, 0, 10, lag.Most},
		{"it is stored then", lag.Most, 10, 3, 3, 10, countAgain},
		{"the number of objects does not wait, and takes the drift along", 0, 11, 4, 4, 11, countAgain},
	}
	for _, step := range steps {
		clock.SetTime(clock.Now().Add(step.after))
		stored, again := count(step.objects, step.drifted)
		if stored.Drifted != step.wantDrifted || stored.Objects != step.wantObjects || again != step.wantAgain {
			t.Errorf("%s: %d of %d are stored, and the next count is in %s", step.name, stored.Drifted, stored.Objects, again)
		}
	}
}

func TestReadyTellsWhatIsWrong(t *testing.T) {
	healthy := kinds{Synced: true}
	tests := map[string]struct {
		change func(*v1alpha1.SpecGuard)
		kinds  kinds
		want   string
	}{
		"in force": {kinds: healthy, want: "Ready=True Active: in force"},
		"a kind being listed": {
			want: "Reconciling=True NotReadable: spec.resources[0]: Deployment is being listed",
		},
		"a kind that may not be read": {
			kinds: kinds{Synced: true, Failure: errors.New("forbidden")},
			want:  "Reconciling=True NotReadable: spec.resources[0]: Deployment cannot be read: forbidden",
		},
		"an unknown kind": {
			change: func(g *v1alpha1.SpecGuard) {
				g.Spec.Resources = []v1alpha1.GuardedResource{kind("example.org/v1", "Widget")}
			},
			kinds: healthy, want: "Stalled=True NotActive: spec.resources[0].kind: example.org/v1, Kind=Widget: the API server does not serve this kind",
		},
		"each of two kinds that may not be read": {
			change: func(g *v1alpha1.SpecGuard) {
				g.Spec.Resources = append(g.Spec.Resources, kind("apps/v1", "StatefulSet"))
			},
			kinds: kinds{Failure: errors.New("forbidden")},
			want:  "spec.resources[0]: Deployment cannot be read: forbidden; spec.resources[1]: StatefulSet cannot be read: forbidden",
		},
		"a kind that may not be read, beside an unknown kind": {
			change: func(g *v1alpha1.SpecGuard) {
				g.Spec.Resources = append(g.Spec.Resources, kind("example.org/v1", "Widget"))
			},
			kinds: kinds{Failure: errors.New("forbidden")},
			want:  "the API server does not serve this kind; spec.resources[0]: Deployment cannot be read: forbidden",
		},
		"suspended": {
			change: func(g *v1alpha1.SpecGuard) {
				g.Spec.Suspend = &v1alpha1.Suspension{Reason: "maintenance", EndTime: metav1.NewTime(epoch.Add(time.Hour))}
			},
			kinds: healthy, want: "Ready=False Suspended: until 2026-01-02T04:04:05Z: maintenance",
		},
		"a group that nobody stamps": {
			change: func(g *v1alpha1.SpecGuard) {
				g.Spec.TrustedWriters.Groups = []string{"stamped", "devs", "system:serviceaccounts:ci"}
			},
			kinds: healthy, want: "so they do not count: devs",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if text := conditionsOf(t, tc.kinds, tc.change); !strings.Contains(text, tc.want) {
				t.Errorf("conditions are %q, want %q", text, tc.want)
			}
		})
	}
}

// conditionsOf fills the status of one guard and returns its conditions as text.
func conditionsOf(t *testing.T, health kinds, change func(*v1alpha1.SpecGuard)) string {
	t.Helper()
	g := specGuard("g", kind("apps/v1", "Deployment"))
	if change != nil {
		change(&g)
	}
	s, err := guards.Build(guards.Input{Guards: []v1alpha1.SpecGuard{g}}, mapper(), epoch)
	if err != nil {
		t.Fatal(err)
	}
	c := &Status{Clock: testingclock.NewFakePassiveClock(epoch), Kinds: health, StampedGroups: []string{"stamped"}}
	c.fill(&g.Status, 1, specguard.GuardRef{Namespace: "shop", Name: "g"}, &g.Spec, s, guards.Tally{})
	var lines []string
	for _, c := range g.Status.Conditions {
		lines = append(lines, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return strings.Join(lines, "\n")
}

// watches counts what a controller asks to watch.
type watches struct{ asked [][]kube.Resource }

func (w *watches) Watch(_ context.Context, r []kube.Resource) { w.asked = append(w.asked, r) }

func TestReconcileActsOnChangesOnly(t *testing.T) {
	types := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(types); err != nil {
		t.Fatal(err)
	}
	if err := metav1.AddMetaToScheme(types); err != nil {
		t.Fatal(err)
	}
	g := specGuard("g", kind("apps/v1", "Deployment"))
	g.Spec.Suspend = &v1alpha1.Suspension{Reason: "maintenance", EndTime: metav1.NewTime(epoch.Add(time.Minute))}
	c := fakeclient.NewBuilder(types).WithRESTMapper(mapperWithOurs()).WithObjects(&g).Build()
	clk := testingclock.NewFakePassiveClock(epoch)
	w := &watches{}
	changed := 0
	controller := &Controller{Client: c, Guards: c, Clock: clk, Watcher: w, Changed: func(guards.Scopes) { changed++ }, lifetime: t.Context()}
	deployment := kube.Key{GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Namespace: g.Namespace, Name: "web"}
	reconcile := func() time.Duration {
		t.Helper()
		result, err := controller.Reconcile(t.Context(), all)
		if err != nil {
			t.Fatal(err)
		}
		return result.RequeueAfter
	}
	if after := reconcile(); after != time.Minute {
		t.Errorf("it looks again after %s, want the end of the suspension", after)
	}
	clk.SetTime(epoch.Add(collectEdits))
	if reconcile(); changed != 1 || len(w.asked) != 1 {
		t.Errorf("%d changes, %d watches after nothing changed", changed, len(w.asked))
	}
	clk.SetTime(epoch.Add(time.Minute))
	if reconcile(); changed != 2 {
		t.Error("the end of a suspension changes nothing")
	}
	clk.SetTime(clk.Now().Add(collectEdits))
	if reconcile(); changed != 2 {
		t.Error("the end of a suspension is told for ever")
	}
	before := controller.Snapshot().FindEpoch(deployment)
	if err := c.Delete(t.Context(), &g); err != nil {
		t.Fatal(err)
	}
	if reconcile(); changed != 3 || len(w.asked[len(w.asked)-1]) != 0 || controller.Snapshot().FindEpoch(deployment) <= before {
		t.Errorf("a removed guard is still in force: %d changes", changed)
	}
	again := specGuard("again", kind("apps/v1", "Deployment"))
	if err := c.Create(t.Context(), &again); err != nil {
		t.Fatal(err)
	}
	if after := reconcile(); changed != 3 || after != collectEdits {
		t.Errorf("an edit right after another is not collected: %d changes, the next look after %s", changed, after)
	}
	clk.SetTime(clk.Now().Add(collectEdits))
	if reconcile(); changed != 4 {
		t.Errorf("a collected edit is lost: %d changes", changed)
	}
	if err := c.Delete(t.Context(), &again); err != nil {
		t.Fatal(err)
	}
	if reconcile(); changed != 4 {
		t.Errorf("the removal of a guard right after an edit is not collected: %d changes", changed)
	}
	clk.SetTime(clk.Now().Add(collectEdits))
	if reconcile(); changed != 5 {
		t.Errorf("the collected removal is lost: %d changes", changed)
	}
	if err := c.Create(t.Context(), namespaceMetadata("new")); err != nil {
		t.Fatal(err)
	}
	if reconcile(); changed != 6 {
		t.Errorf("a new namespace waits: %d changes", changed)
	}
}

// The assessor must not go on to write where everything is being deleted.
func TestAGuardThatGoesWithItsNamespaceNeverWaits(t *testing.T) {
	leaving := namespaceMetadata("shop")
	leaving.DeletionTimestamp = &metav1.Time{Time: epoch}
	in := guards.Input{Namespaces: []metav1.PartialObjectMetadata{*leaving}, Guards: []v1alpha1.SpecGuard{specGuard("g", kind("apps/v1", "Deployment"))}}
	s, err := guards.Build(in, mapper(), epoch)
	if err != nil {
		t.Fatal(err)
	}
	c := &Controller{Clock: testingclock.NewFakePassiveClock(epoch), changedAt: epoch}
	c.current.Store(s)
	if wait := c.postpone(&in); wait != collectEdits {
		t.Errorf("an input without a change of namespaces waits %s, want %s", wait, collectEdits)
	}
	in.Guards = nil
	if wait := c.postpone(&in); wait != 0 {
		t.Errorf("the removal of the guard waits %s", wait)
	}
}

func namespaceMetadata(name string) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
	m.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	return m
}

func mapperWithOurs() meta.RESTMapper {
	m := mapper()
	for _, k := range []string{"SpecGuard", "Baseline"} {
		m.Add(v1alpha1.GroupVersion.WithKind(k), meta.RESTScopeNamespace)
	}
	m.Add(v1alpha1.GroupVersion.WithKind("ClusterSpecGuard"), meta.RESTScopeRoot)
	m.Add(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, meta.RESTScopeRoot)
	return m
}
