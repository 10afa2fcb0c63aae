// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// remember lets an Environment, which is made if need be, remember a ledger.
func remember(w *world, name, uid string) {
	w.Helper()
	environment := &v1alpha1.Environment{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_ = w.Client.Create(w.Context(), environment) // it may be there already
	read(w, types.NamespacedName{Name: name}, environment)
	environment.Status.LedgerUID = uid
	if err := w.Client.Status().Update(w.Context(), environment); err != nil {
		w.Fatal(err)
	}
}

// put stores a ledger as it is.
func put(w *world, l *v1alpha1.RemediationLedger) {
	w.Helper()
	status := l.Status
	l.Namespace = w.Namespace
	if err := w.Client.Create(w.Context(), l); err != nil {
		w.Fatal(err)
	}
	l.Status = status
	if err := w.Client.Status().Update(w.Context(), l); err != nil {
		w.Fatal(err)
	}
}

func ledgerOf(name string, sequence int64) *v1alpha1.RemediationLedger {
	return &v1alpha1.RemediationLedger{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.RemediationLedgerSpec{Scope: scopeOf(name)},
		Status: v1alpha1.RemediationLedgerStatus{Sequence: sequence},
	}
}

// A ledger grants at once only if it is certain that it had no forerunner.
func TestALedgerThatHadAForerunnerGrantsNothingForADay(t *testing.T) {
	tomorrow := epoch.Add(24 * time.Hour)
	tests := map[string]struct {
		world  func(*world)
		ledger string
		from   time.Time
		calls  []string
	}{
		"the first ledger of the cluster grants at once": {
			func(*world) {}, ClusterLedger, time.Time{}, []string{"create RemediationLedger plumbline-cluster", "update RemediationLedger plumbline-cluster"},
		},
		"where an Environment remembers one, that of the cluster had a forerunner": {
			func(w *world) { remember(w, "production", "earlier") }, ClusterLedger, tomorrow,
			[]string{"create RemediationLedger plumbline-cluster", "update RemediationLedger plumbline-cluster"},
		},
		"also where another Environment remembers none": {
			func(w *world) { remember(w, "aged", "earlier"); remember(w, "new", "") }, ClusterLedger, tomorrow,
			[]string{"create RemediationLedger plumbline-cluster", "update RemediationLedger plumbline-cluster"},
		},
		"the first one of an Environment grants at once; that of the cluster begins first": {
			func(*world) {}, "production", time.Time{},
			[]string{
				"create RemediationLedger production", "create RemediationLedger plumbline-cluster", "update RemediationLedger plumbline-cluster",
				"patch Environment production", "update RemediationLedger production",
			},
		},
		"the second one of an Environment begins before the Environment remembers it": {
			func(w *world) { remember(w, "production", "earlier") }, "production", tomorrow,
			[]string{"create RemediationLedger production", "update RemediationLedger production", "patch Environment production"},
		},
		"one that was remembered and did not begin, grants at once": {
			func(w *world) { put(w, ledgerOf("production", 0)); remember(w, "production", "uid-1") }, "production", time.Time{},
			[]string{"update RemediationLedger production"},
		},
		"one that began and was not remembered, is remembered": {
			func(w *world) { put(w, ledgerOf("production", 5)); remember(w, "production", "earlier") }, "production", time.Time{},
			[]string{"patch Environment production"},
		},
		"one that began and is remembered, is left alone": {
			func(w *world) { put(w, ledgerOf("production", 5)); remember(w, "production", "uid-1") }, "production", time.Time{}, nil,
		},
		"that of an Environment that is gone ends its steps": {
			func(w *world) {
				put(w, ledgerOf("production", 5))
				w.remove(&v1alpha1.Environment{ObjectMeta: metav1.ObjectMeta{Name: "production"}})
			}, "production", time.Time{}, nil,
		},
		"the cluster's one that began is left alone": {func(w *world) { put(w, ledgerOf(ClusterLedger, 5)) }, ClusterLedger, time.Time{}, nil},
		"a person lets one grant all the same": {
			func(w *world) {
				l := ledgerOf("production", 5)
				l.Spec.Override = &v1alpha1.LedgerOverride{RequestedBy: "alice"}
				l.Status.GrantStartTime = &metav1.Time{Time: tomorrow}
				put(w, l)
				remember(w, "production", "uid-1")
			}, "production", time.Time{}, []string{"update RemediationLedger production"},
		},
		"a person's word is written once": {
			func(w *world) {
				l := ledgerOf("production", 5)
				l.Spec.Override = &v1alpha1.LedgerOverride{RequestedBy: "alice"}
				put(w, l)
				remember(w, "production", "uid-1")
			}, "production", time.Time{}, nil,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			test.world(w)
			w.calls = nil
			l, err := w.readLedger(t.Context(), test.ledger)
			if err != nil {
				t.Fatal(err)
			}
			var from time.Time
			if l.Status.GrantStartTime != nil {
				from = l.Status.GrantStartTime.Time
			}
			if l.Status.Sequence == 0 || !from.Equal(test.from) || l.Spec.Scope != scopeOf(test.ledger) {
				t.Errorf("it grants from %s, want %s: %+v", from, test.from, l)
			}
			if diff := cmp.Diff(test.calls, w.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if test.ledger != ClusterLedger && len(test.calls) > 0 && strings.Contains(strings.Join(test.calls, " "), "Environment") {
				environment := &v1alpha1.Environment{}
				read(w, types.NamespacedName{Name: "production"}, environment)
				if environment.Status.LedgerUID != string(l.UID) {
					t.Errorf("the Environment remembers %q, want %q", environment.Status.LedgerUID, l.UID)
				}
			}
		})
	}
}

// The assessor alone writes all else of the status, also the first time.
func TestANewEnvironmentRemembersItsLedgerAndNothingElse(t *testing.T) {
	w := newWorld(t)
	if _, err := w.readLedger(t.Context(), "production"); err != nil {
		t.Fatal(err)
	}
	if len(w.patched) != 1 {
		t.Fatalf("patches are %q", w.patched)
	}
	var patch struct {
		Metadata map[string]any
		Status   map[string]any
	}
	if err := json.Unmarshal([]byte(w.patched[0]), &patch); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"ledgerUID": "uid-1"}, patch.Status); diff != "" || patch.Metadata["resourceVersion"] == "" {
		t.Errorf("the patch is %s (-want +got):\n%s", w.patched[0], diff)
	}
}

func TestALedgerThatCannotBeginIsAnError(t *testing.T) {
	fails := func(call string) func(*world) {
		return func(w *world) { w.failing(call, errNetwork) }
	}
	tests := map[string]struct {
		world  func(*world)
		ledger string
	}{
		"it cannot be made":                            {fails("create RemediationLedger"), "production"},
		"it cannot be read":                            {fails("get RemediationLedger"), "production"},
		"its Environment cannot be read":               {fails("get Environment"), "production"},
		"its Environment is gone before it began":      {func(w *world) { w.remove(&v1alpha1.Environment{ObjectMeta: metav1.ObjectMeta{Name: "production"}}) }, "production"},
		"its Environment cannot remember it":           {fails("patch Environment"), "production"},
		"its beginning cannot be stored":               {fails("update RemediationLedger"), "production"},
		"the Environments cannot be listed":            {fails("list EnvironmentList"), ClusterLedger},
		"that of the cluster cannot begin before it":   {fails("list EnvironmentList"), "production"},
		"that of the cluster cannot be stored":         {fails("update RemediationLedger"), ClusterLedger},
		"an Environment has the cluster ledger's name": {func(w *world) { l := ledgerOf(ClusterLedger, 5); l.Spec.Scope = scopeEnvironment; put(w, l) }, ClusterLedger},
		"the beginning of a second one is not stored": {func(w *world) {
			remember(w, "production", "earlier")
			w.failing("update RemediationLedger", errNetwork)
		}, "production"},
		"a second one cannot be remembered": {func(w *world) {
			remember(w, "production", "earlier")
			w.failing("patch Environment", errNetwork)
		}, "production"},
		"a person's word cannot be stored": {func(w *world) {
			l := ledgerOf(ClusterLedger, 5)
			l.Spec.Override, l.Status.GrantStartTime = &v1alpha1.LedgerOverride{RequestedBy: "alice"}, &metav1.Time{Time: epoch}
			put(w, l)
			w.failing("update RemediationLedger", errNetwork)
		}, ClusterLedger},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			test.world(w)
			if l, err := w.readLedger(t.Context(), test.ledger); err == nil {
				t.Errorf("it begins: %+v", l.Status)
			}
		})
	}
}
