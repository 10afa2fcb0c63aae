// SPDX-License-Identifier: Apache-2.0

package elected

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/plumbline-dev/plumbline/internal/servertime"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestAPartKnowsPlumblinesKindsAndKubernetes(t *testing.T) {
	mgr, _ := part(t, &rest.Config{Host: "http://127.0.0.1:1"})
	for _, gvk := range []string{"RemediationPlan", "Baseline"} {
		if !mgr.GetScheme().Recognizes(v1alpha1.GroupVersion.WithKind(gvk)) {
			t.Errorf("it does not know %s", gvk)
		}
	}
}

// Two parts in one process are made from one configuration.
func TestAPartLeavesItsConfigurationAsItWas(t *testing.T) {
	own := &rest.Config{Host: "http://127.0.0.1:1", QPS: 7}
	_, work := part(t, own)
	if own.QPS != 7 || own.WrapTransport != nil {
		t.Errorf("the configuration is now %+v", own)
	}
	if work.QPS != -1 || work.WrapTransport == nil {
		t.Errorf("its clients wait for each other, or do not compare clocks: %+v", work)
	}
}

func part(t *testing.T, own *rest.Config) (manager.Manager, *rest.Config) {
	t.Helper()
	mgr, work, err := Part{
		Config: own, Lease: "plumbline-test", Namespace: "plumbline-system", Time: servertime.New(clock.RealClock{}), Log: logr.Discard(),
	}.New()
	if err != nil {
		t.Fatal(err)
	}
	return mgr, work
}

func TestTheGateOpensWhenTheCachesAreSyncedLeaderOrNot(t *testing.T) {
	for name, isSynced := range map[string]bool{"synced": true, "not synced": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var gate Gate
				c := &informertest.FakeInformers{Synced: &isSynced}
				ended := start(t, Synced(c, gate.Open))
				synctest.Wait()
				if got := gate.Check() == nil; got != isSynced {
					t.Errorf("the gate is open: %v", got)
				}
				ended()
			})
		})
	}
	if r, ok := Synced(nil, nil).(manager.LeaderElectionRunnable); !ok || r.NeedLeaderElection() {
		t.Error("a replica that does not lead is never ready")
	}
}

// start runs until the returned function is called.
func start(t *testing.T, r manager.Runnable) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Start(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
