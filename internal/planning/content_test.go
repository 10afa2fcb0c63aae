// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/internal/guards"
	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// The watch does not keep the content of each object.
func TestAPlanForAnObjectWithoutContentIsTheSameAsLive(t *testing.T) {
	c := newCluster(t)
	c.Policy.Spec.Action = v1alpha1.ActionScale
	live := c.live()
	world, err := live.World(t.Context(), epoch)
	if err != nil {
		t.Fatal(err)
	}
	v, whole := views{}, map[kube.Key]*kube.Object{}
	for name, d := range c.Objects {
		key, o := kube.Key{GroupVersionKind: deployments, Namespace: "shop", Name: name}, c.Decode(d)
		whole[key] = o
		v[key] = kube.View{Current: &kube.Object{ObjectMeta: o.ObjectMeta, FullHash: o.FullHash, Ready: o.Ready}}
	}
	reader, reads := c.Reader(), 0
	read := func(_ context.Context, key kube.Key) (*kube.Object, error) {
		reads++
		return whole[key], nil
	}
	src := &FromCache{Cache: reader, Live: reader, Snapshot: func() *guards.Snapshot { return world.Guards }, Objects: v, Read: read}
	cached, err := Gather(t.Context(), src, c.question())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c.gather().Input, cached.Input); diff != "" || reads == 0 {
		t.Errorf("%d reads (-live +cache):\n%s", reads, diff)
	}
	for name, fail := range map[string]func(context.Context, kube.Key) (*kube.Object, error){
		"an object that cannot be read":  func(context.Context, kube.Key) (*kube.Object, error) { return nil, errors.New("refused") },
		"one that is gone meanwhile":     func(context.Context, kube.Key) (*kube.Object, error) { return nil, nil },
		"one that was changed meanwhile": func(context.Context, kube.Key) (*kube.Object, error) { return &kube.Object{FullHash: "other"}, nil },
	} {
		src.Read = fail
		g, err := Gather(t.Context(), src, c.question())
		if err != nil || g.Input.Drifts[0].State != v1alpha1.StateUnknown {
			t.Errorf("%s: %+v (%v)", name, g, err)
		}
	}
}
