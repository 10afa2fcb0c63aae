// SPDX-License-Identifier: Apache-2.0

package elected

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/plumbline-dev/plumbline/internal/servertime"
)

func TestAManagerThatEndsIsFollowedByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := Part{
			Config: &rest.Config{Host: "http://127.0.0.1:1"}, Lease: "plumbline-test", Namespace: "plumbline-system",
			Time: servertime.New(clock.RealClock{}), Log: logr.Discard(),
		}
		ctx, stop := context.WithCancel(t.Context())
		managers := map[manager.Manager]bool{}
		var waits []time.Duration
		ended := time.Now()
		p.Again(ctx, clock.RealClock{}, func(mgr manager.Manager, _ *rest.Config) error {
			if len(managers) > 0 {
				waits = append(waits, time.Since(ended))
			}
			managers[mgr] = true
			switch len(managers) {
			case 8: // It works for a while.
				timer := time.NewTimer(steady)
				defer timer.Stop()
				<-timer.C
			case 10:
				stop()
			}
			ended = time.Now()
			return errors.New("the lease is lost")
		})
		var seconds []float64
		for _, w := range waits {
			seconds = append(seconds, w.Seconds())
		}
		if diff := cmp.Diff([]float64{1, 2, 4, 8, 16, 30, 30, 1, 2}, seconds); diff != "" {
			t.Errorf("waits in seconds (-want +got)\n%s", diff)
		}
	})
}
