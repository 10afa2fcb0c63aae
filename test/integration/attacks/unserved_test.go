// SPDX-License-Identifier: Apache-2.0

//go:build integration

package attacks

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

const (
	// manyGuards are those of a tenant, in two namespaces: one has room for 64.
	manyGuards = 100
	// kindsOfAGuard is how many kinds a guard may name.
	kindsOfAGuard = 32
)

// unknownKindsOf are kinds that the API server does not serve, others for each guard.
func unknownKindsOf(guard int) []v1alpha1.GuardedResource {
	var out []v1alpha1.GuardedResource
	for k := range kindsOfAGuard {
		out = append(out, v1alpha1.GuardedResource{APIVersion: fmt.Sprintf("nobody%d.example.com/v1", guard*kindsOfAGuard+k), Kind: "Nothing"})
	}
	return out
}

// makeGuards makes the guards, until the end of the test.
func makeGuards(t testing.TB, kinds func(guard int) []v1alpha1.GuardedResource) []*v1alpha1.SpecGuard {
	t.Helper()
	places := []*place{newPlace(t), newPlace(t)}
	var guards []*v1alpha1.SpecGuard
	for i := range manyGuards {
		p := places[i%len(places)]
		g := &v1alpha1.SpecGuard{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: fmt.Sprintf("guard-%d", i)}}
		g.Spec.Resources = kinds(i)
		p.must(admin.Create(t.Context(), g))
		guards = append(guards, g)
	}
	t.Cleanup(func() {
		for _, g := range guards {
			if err := admin.Delete(context.Background(), g); err != nil {
				t.Error(err)
			}
		}
	})
	return guards
}

// H2 of the guard's review: the guards of one tenant over 3,200 kinds that the API server
// does not serve kept the webhook from everybody's guards for minutes, and a restarted
// webhook from being ready.
func TestAHundredGuardsOverUnservedKindsDelayNobodysGuard(t *testing.T) {
	makeGuards(t, unknownKindsOf)
	p := newPlace(t)
	g := guarded.Guard(p.namespace)
	began := time.Now()
	p.must(admin.Create(t.Context(), g))
	var atWebhook, atAssessor time.Duration
	p.eventually("webhook and assessor know the guard of another tenant", func() error {
		if err := p.stampedByWebhook(); atWebhook == 0 && err == nil {
			atWebhook = time.Since(began)
		}
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(g), g); err != nil {
			return err
		}
		if atAssessor == 0 && guarded.Ready(g) == nil {
			atAssessor = time.Since(began)
		}
		if atWebhook == 0 || atAssessor == 0 {
			return fmt.Errorf("after %s: webhook %s, assessor %s", time.Since(began), atWebhook, atAssessor)
		}
		return nil
	})
	t.Logf("a guard is in force after %s at the webhook, %s at the assessor; figure: 2s", atWebhook.Round(time.Millisecond), atAssessor.Round(time.Millisecond))

	p.must(hook.Kill())
	began = time.Now()
	p.must(startHook())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	p.must(hook.Ready(ctx))
	t.Logf("the killed webhook is ready after %s; figure: 5s", time.Since(began).Round(time.Millisecond))
	if n := p.metric("plumbline_guards", `state="active"`); n < manyGuards+1 {
		t.Errorf("a webhook that is ready knows %v guards of %d", n, manyGuards+1)
	}
	p.eventually("the webhook stamps again", p.stampedByWebhook)
}

// stampedByWebhook tells whether the webhook stamps the hash on a new Deployment.
func (p *place) stampedByWebhook() error {
	probe := deployment(p.namespace, "probe")
	if err := as(p.t, ci).Create(p.t.Context(), probe, client.DryRunAll); err != nil {
		return err
	}
	if probe.Annotations[v1alpha1.AnnotationSpecHash] == "" {
		return errors.New("the webhook does not stamp yet")
	}
	return nil
}
