// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// twoGuards has a guard of the platform, which trusts ci, and one of the tenant, which
// trusts the tenant, too.
type twoGuards struct {
	*world
	platform, tenant v1alpha1.GuardSpec
	made             time.Time
}

func newTwoGuards(t *testing.T) *twoGuards {
	w := &twoGuards{world: newWorld(t), platform: testGuardSpec()}
	w.made = w.now
	w.platform.Resources = []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "Deployment"}}
	w.tenant = v1alpha1.GuardSpec{Resources: w.platform.Resources, TrustedWriters: *w.platform.TrustedWriters.DeepCopy()}
	w.tenant.TrustedWriters.Users = append(w.tenant.TrustedWriters.Users, user("tenant"))
	w.apply(w.made)
	w.now = w.now.Add(time.Minute)
	return w
}

// apply puts both guards in force as they are.
func (w *twoGuards) apply(tenantMade time.Time) {
	w.t.Helper()
	compile := func(ref GuardRef, spec v1alpha1.GuardSpec, at time.Time) *Guard {
		g, errs := Compile(ref, spec, nil, at)
		if len(errs) > 0 {
			return CompileInert(ref, spec, nil, at)
		}
		return g
	}
	w.guards = []*Guard{compile(GuardRef{Name: "platform"}, w.platform, w.made), compile(GuardRef{Namespace: "shop", Name: "mine"}, w.tenant, tenantMade)}
	w.rule()
}

func (w *twoGuards) suspend(d time.Duration) {
	w.platform.Suspend = &v1alpha1.Suspension{Reason: "maintenance", EndTime: metav1.NewTime(w.now.Add(d))}
	w.apply(w.made)
}

const imagePath = "/spec/template/spec/containers/[name=app]/image"

// H5 of the guard's review: what the rest of the guards authorized during a suspension
// stayed authorized.
func TestNothingIsAuthorizedUnderASuspendedGuardThatItWouldNotAuthorizeItself(t *testing.T) {
	w := newTwoGuards(t)
	w.create(write{user: user("ci")}, testDeployment)
	w.observe(false, false)
	w.suspend(time.Hour)
	w.by("tenant", imagePath+` = "registry.example/evil:1"`)
	during := w.report()
	if w.state.Drift != v1alpha1.StateDrifted || w.state.Authorized.Number != 1 {
		t.Fatalf("during the suspension:\n%s", during)
	}
	w.now = w.now.Add(2 * time.Hour)
	w.rule()
	w.observe(false, false)
	if w.state.Drift != v1alpha1.StateDrifted || w.state.Findings[0].Actor.Class != v1alpha1.ActorUntrusted {
		t.Errorf("after the suspension:\n%s", w.report())
	}
}

// Else a maintenance by CI would be put back when it is over.
func TestWhatEachGuardTrustsIsAuthorizedDuringASuspension(t *testing.T) {
	w := newTwoGuards(t)
	w.create(write{user: user("ci")}, testDeployment)
	w.observe(false, false)
	w.suspend(time.Hour)
	w.by("ci", imagePath+` = "registry.example/shop/web:2"`)
	if w.state.Drift != v1alpha1.StateInSync || w.state.Authorized.Number != 2 {
		t.Error(w.report())
	}
}

func TestNothingIsImportedThatIsYoungerThanASuspendedGuard(t *testing.T) {
	w := newTwoGuards(t)
	w.suspend(time.Hour)
	w.create(write{user: user("tenant")}, testDeployment)
	w.now = w.now.Add(time.Minute)
	w.apply(w.now) // the tenant's guard is made after the object
	w.observe(true, false)
	if w.state.Authorized != nil || w.state.Drift != v1alpha1.StateDrifted {
		t.Error(w.report())
	}
}

func TestAGuardThatDoesNotCompileVetoes(t *testing.T) {
	inert := func(w *twoGuards) {
		w.platform.Mode = "Mystery"
		w.apply(w.made)
	}
	t.Run("each authorization", func(t *testing.T) {
		w := newTwoGuards(t)
		w.create(write{user: user("ci")}, testDeployment)
		w.observe(false, false)
		inert(w)
		w.by("ci", imagePath+` = "registry.example/shop/web:2"`)
		if w.state.Drift != v1alpha1.StateDrifted || w.state.Authorized.Number != 1 || w.state.Findings[0].Actor.Class != v1alpha1.ActorUnknown {
			t.Error(w.report())
		}
	})
	t.Run("each import, until it compiles", func(t *testing.T) {
		w := newTwoGuards(t)
		w.now = w.made.Add(-time.Minute)
		w.create(write{user: user("ci")}, testDeployment)
		w.now = w.made.Add(time.Minute)
		inert(w)
		w.observe(true, false)
		if w.state.Authorized != nil || w.state.Drift != v1alpha1.StateUnknown {
			t.Errorf("while it is inert: %s", w.report())
		}
		w.platform.Mode = v1alpha1.GuardModeWarn
		w.apply(w.made)
		w.observe(true, false)
		if w.state.Drift != v1alpha1.StateInSync || w.state.Authorized.Origin != v1alpha1.OriginImported {
			t.Errorf("once it compiles: %s", w.report())
		}
	})
	t.Run("but guards nothing alone", func(t *testing.T) {
		w := newTwoGuards(t)
		w.platform.Mode = "Mystery"
		w.apply(w.made)
		w.guards = w.guards[:1]
		w.rule()
		if !w.rules.Empty() || len(NewGuardSet(w.guards, nil, System{}).Resources()) != 0 {
			t.Error("it guards something")
		}
	})
}

// A label that is taken off during a suspension must not release the object.
func TestASuspendedGuardGoesOnSelectingWhatItSelected(t *testing.T) {
	w := newTwoGuards(t)
	w.suspend(time.Hour)
	if got, want := w.rules.ListSelectingGuards(), []string{"ClusterSpecGuard/platform", "SpecGuard/mine"}; len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("selecting: %v", got)
	}
	if got := w.rules.Guards(); len(got) != 1 || got[0] != "SpecGuard/mine" {
		t.Errorf("in force: %v", got)
	}
}

// H2 of the guard's review: a namespace could have guards without number.
func TestOfTheGuardsOfANamespaceTheOldestAreInForce(t *testing.T) {
	made := map[GuardRef]time.Time{}
	for i := range MaxNamespaceGuards + 2 {
		made[GuardRef{Namespace: "many", Name: fmt.Sprintf("g%03d", i)}] = testNow.Add(time.Duration(i/2) * time.Second)
		made[GuardRef{Name: fmt.Sprintf("c%03d", i)}] = testNow
	}
	for i := range MaxNamespaceGuards {
		made[GuardRef{Namespace: "enough", Name: fmt.Sprintf("g%03d", i)}] = testNow
	}
	want := map[GuardRef]bool{
		{Namespace: "many", Name: fmt.Sprintf("g%03d", MaxNamespaceGuards)}:   true,
		{Namespace: "many", Name: fmt.Sprintf("g%03d", MaxNamespaceGuards+1)}: true,
	}
	if diff := cmp.Diff(want, FindExcessGuards(made)); diff != "" {
		t.Errorf("beyond the bound (-want +got):\n%s", diff)
	}
}
