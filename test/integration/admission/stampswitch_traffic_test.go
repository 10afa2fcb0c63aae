// SPDX-License-Identifier: Apache-2.0

//go:build integration

package admission

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	guards "github.com/plumbline-dev/plumbline/test/harness/guarded"
)

const (
	// trafficObjects is how many objects CI writes in turn, and how many of CI's alice
	// does: each is written so rarely that no two writes fall into the restart of an
	// assessor, after which it believes no stamp.
	trafficObjects = 80
	// trafficPause is the time between two rounds of writes.
	trafficPause = 150 * time.Millisecond
)

// traffic writes without pause, as CI and as alice, and watches the Baselines.
type traffic struct {
	*place
	ci, alice client.Client
	watching  client.WithWatch

	cancel context.CancelFunc
	ended  sync.WaitGroup

	mu sync.Mutex
	// revisions are how many revisions each object of CI has to have; the objects that
	// alice has written, or made, have the value of [alices] and [evil].
	revisions map[string]int64
	wrong     []string
	failed    error
}

const (
	alices = -1 // one revision, and drift
	evil   = -2 // no revision
)

// startTraffic makes the objects, and begins to write.
func startTraffic(p *place) *traffic {
	p.t.Helper()
	config := rest.CopyConfig(w.config)
	config.QPS = -1
	as := func(user string) client.Client {
		c, err := apiserver.As(config, user)
		if err != nil {
			p.t.Fatal(err)
		}
		return c
	}
	watching, err := client.NewWithWatch(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		p.t.Fatal(err)
	}
	x := &traffic{place: p, ci: as(ci), alice: as(alice), watching: watching, revisions: map[string]int64{}}
	ctx, cancel := context.WithCancel(context.Background())
	x.cancel = cancel
	p.t.Cleanup(x.stop)
	for i := range trafficObjects {
		x.create(ctx, x.ci, fmt.Sprintf("ci-%d", i), "", 1)
		x.create(ctx, x.ci, fmt.Sprintf("alice-%d", i), "", 1)
	}
	x.settle("before the first switch")
	list := &v1alpha1.BaselineList{}
	if err := watching.List(ctx, list, client.InNamespace(p.namespace)); err != nil {
		p.t.Fatal(err)
	}
	x.ended.Go(func() { x.watch(ctx, list.ResourceVersion) })
	x.ended.Go(func() { x.write(ctx) })
	return x
}

// stop ends the writes; the objects stay.
func (x *traffic) stop() {
	x.cancel()
	x.ended.Wait()
}

// write is a round after the other until ctx ends.
func (x *traffic) write(ctx context.Context) {
	ticker := time.NewTicker(trafficPause)
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		x.setImage(ctx, x.ci, fmt.Sprintf("ci-%d", n%trafficObjects), n, false)
		x.setImage(ctx, x.alice, fmt.Sprintf("alice-%d", n%trafficObjects), n, true)
		if n%5 == 0 {
			x.create(ctx, x.ci, fmt.Sprintf("new-%d", n), "", 1)
			x.create(ctx, x.alice, fmt.Sprintf("evil-%d", n), ci, evil)
		}
	}
}

// create makes a Deployment, and notes what has to become of it.
func (x *traffic) create(ctx context.Context, as client.Client, name, forged string, revisions int64) {
	d := webDeployment()
	d.Namespace, d.Name = x.namespace, name
	if forged != "" {
		d.Annotations = map[string]string{v1alpha1.AnnotationWriter: forged}
	}
	x.did(ctx, as.Create(ctx, d), name, func(int64) int64 { return revisions })
}

// setImage writes a new image, with a forged stamp if it is foreign.
func (x *traffic) setImage(ctx context.Context, as client.Client, name string, n int, foreign bool) {
	body := fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"shop/web:n%d"}]}}}}`, n)
	if foreign {
		body = fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}},"spec":{"template":{"spec":{"containers":[{"name":"app","image":"shop/web:evil%d"}]}}}}`,
			v1alpha1.AnnotationWriter, ci, n)
	}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: name}}
	err := as.Patch(ctx, d, client.RawPatch(types.StrategicMergePatchType, []byte(body)))
	x.did(ctx, err, name, func(before int64) int64 {
		if foreign {
			return alices
		}
		return before + 1
	})
}

func (x *traffic) did(ctx context.Context, err error, name string, revisions func(int64) int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case err == nil:
		x.revisions[name] = revisions(x.revisions[name])
	case ctx.Err() != nil: // nobody knows what became of it
		delete(x.revisions, name)
	case x.failed == nil:
		x.failed = fmt.Errorf("writing %s: %w", name, err)
	}
}

// watch looks at each status that the assessor writes.
func (x *traffic) watch(ctx context.Context, version string) {
	events, err := x.watching.Watch(ctx, &v1alpha1.BaselineList{}, client.InNamespace(x.namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version}})
	if err != nil {
		x.did(ctx, err, "the watch of Baselines", nil)
		return
	}
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-events.ResultChan():
			b, ok := e.Object.(*v1alpha1.Baseline)
			if !ok {
				x.did(ctx, fmt.Errorf("%s %T", e.Type, e.Object), "the watch of Baselines", nil)
				return
			}
			x.look(b)
		}
	}
}

// look notes a Baseline that must never be as it is.
func (x *traffic) look(b *v1alpha1.Baseline) {
	x.mu.Lock()
	defer x.mu.Unlock()
	name, expected := b.Spec.Target.Name, x.revisions[b.Spec.Target.Name]
	authorized, drifted := guards.Authorized(b), b.Status.State == v1alpha1.StateDrifted
	var bad bool
	switch expected {
	case alices:
		bad = authorized != 1
	case evil:
		bad = authorized != 0
	default:
		bad = drifted && !strings.HasPrefix(name, "alice-") && !strings.HasPrefix(name, "evil-") // her first write may be judged before it is noted
	}
	if bad {
		x.wrong = append(x.wrong, fmt.Sprintf("%s %s: revision %d, %s", time.Now().Format("05.000"), name, authorized, guards.Describe(b)))
	}
}

// check reports what went wrong so far.
func (x *traffic) check(when string) {
	x.t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.failed != nil {
		x.t.Fatalf("%s: %v", when, x.failed)
	}
	for _, line := range x.wrong {
		x.t.Errorf("%s: %s", when, line)
	}
	x.wrong = nil
}

// settle waits until each Baseline is as its object's writers make it.
func (x *traffic) settle(when string) {
	x.t.Helper()
	left := ""
	defer func() {
		if x.t.Failed() {
			x.t.Logf("%s: %s", when, left)
		}
	}()
	eventually(x.t, "all is judged "+when, func() bool {
		list := &v1alpha1.BaselineList{}
		if err := w.client.List(x.t.Context(), list, client.InNamespace(x.namespace)); err != nil {
			left = err.Error()
			return false
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		want := len(x.revisions)
		for i := range list.Items {
			b := &list.Items[i]
			expected, ok := x.revisions[b.Spec.Target.Name]
			state, revisions := v1alpha1.StateInSync, expected
			switch expected {
			case alices:
				state, revisions = v1alpha1.StateDrifted, 1
			case evil:
				state, revisions = v1alpha1.StateDrifted, 0
			}
			if ok && b.Status.State == state && guards.Authorized(b) == revisions {
				want--
			} else if ok {
				left = fmt.Sprintf("%s: revision %d of %d, %s", b.Spec.Target.Name, guards.Authorized(b), revisions, guards.Describe(b))
			}
		}
		return want == 0
	})
}

// counts are how many writes there were, for the log of the test.
func (x *traffic) counts() (trusted, foreign int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, n := range x.revisions {
		if n > 0 {
			trusted += int(n)
		} else {
			foreign++
		}
	}
	return trusted, foreign
}
