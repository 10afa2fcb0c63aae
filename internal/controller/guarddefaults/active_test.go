// SPDX-License-Identifier: Apache-2.0

package guarddefaults

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/guarddefaults"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/fakeclient"
)

func with(d v1alpha1.GuardDefaults, change func(*v1alpha1.GuardDefaultsSpec)) v1alpha1.GuardDefaults {
	d.UID, d.Generation = types.UID(d.Name), 1
	change(&d.Spec)
	return d
}

func every(period time.Duration) func(*v1alpha1.GuardDefaultsSpec) {
	return func(s *v1alpha1.GuardDefaultsSpec) { s.Defaults.ResyncPeriod = &metav1.Duration{Duration: period} }
}

// apiServer holds objects for a controller.
func apiServer(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := apiruntime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fakeclient.NewBuilder(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.GuardDefaults{}).Build()
}

// What is known is told once all of it is, and told again only when it changes.
func TestTheControllerTellsWhatChanges(t *testing.T) {
	wide := with(defaults("wide", "", 0), every(time.Hour))
	c := &Controller{Client: apiServer(t, &wide, &v1alpha1.Environment{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}), Clock: clock.RealClock{}}
	changes := 0
	c.Changed = func() { changes++ }
	reconcile := func(want int) {
		t.Helper()
		if _, err := c.Reconcile(t.Context(), all); err != nil {
			t.Fatal(err)
		}
		if changes != want {
			t.Errorf("%d changes were told, want %d", changes, want)
		}
	}
	reconcile(1)
	if c.Active() != nil {
		t.Error("something is in force before it is known who belongs to which environment")
	}
	c.EnvironmentsAssigned()
	if f := c.Active(); f.Epoch != 1 || f.InstallWide() == nil {
		t.Errorf("in force is %+v", f)
	}
	reconcile(1) // its own status
	prod := with(defaults("prod", "prod", 0), every(time.Minute))
	if err := c.Client.Create(t.Context(), &prod); err != nil {
		t.Fatal(err)
	}
	reconcile(2)
	if f := c.Active(); f.Epoch != 2 || f.Environment("prod") == nil {
		t.Errorf("in force is %+v", f)
	}
	live, err := guarddefaults.Read(t.Context(), c.Client)
	if err != nil || !live.MatchesSpecs(c.Active()) || live.Epoch != 0 {
		t.Errorf("read live it is %+v (%v)", live, err)
	}
}
