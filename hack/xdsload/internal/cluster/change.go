// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/world"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
)

// Tokens of all proxies, of their pods.
func (c *Cluster) Tokens(ctx context.Context) ([]string, error) {
	tokens := make([]string, c.shape.Proxies)
	err := each(ctx, c.shape.Proxies, func(ctx context.Context, i int) error {
		pod := c.pods[i]
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			Audiences: []string{identity.Audience}, ExpirationSeconds: new(int64(7200)),
			BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
		}}
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: apps, Name: front}}
		if err := c.admin.SubResource("token").Create(ctx, account, request); err != nil {
			return fmt.Errorf("making a token: %w", err)
		}
		tokens[i] = request.Status.Token
		return nil
	})
	return tokens, err
}

// Authority is the PEM that proxies trust, once the discovery server has published it; until then it
// is empty.
func (c *Cluster) Authority(ctx context.Context) (string, error) {
	var m corev1.ConfigMap
	if err := c.admin.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: inject.CAConfigMap}, &m); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading the authorities: %w", err)
	}
	return m.Data[inject.CAKey], nil
}

// divide a target: its release, which is in force, and a pod for each variation.
func (c *Cluster) divide(ctx context.Context, t world.Target) error {
	namespace, name := c.shape.Name(c.shape.Service(t))
	r := &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	r.Spec.ServiceName, r.Spec.Stable = name, "stable"
	r.Spec.TrafficSplit = v1alpha1.TrafficSplit{Type: v1alpha1.TrafficSplitPercentage, Percentages: map[string]v1alpha1.Percentage{"stable": v1alpha1.Percent(100), "canary": v1alpha1.Percent(0)}}
	force := &v1alpha1.EffectiveSplit{Sequence: 1, Generation: 1, ServiceName: name, Salt: "s1", Key: v1alpha1.SplitKey{Type: v1alpha1.SplitKeyPerRequest}}
	for i, v := range []v1alpha1.VariationName{"stable", "canary"} {
		labels := map[string]string{"of": name, "variation": string(v)}
		selector := &v1alpha1.PodSelector{MatchLabels: map[string]v1alpha1.LabelValue{"of": v1alpha1.LabelValue(name), "variation": v1alpha1.LabelValue(v)}}
		r.Spec.Variations = append(r.Spec.Variations, v1alpha1.Variation{Name: v, Selector: selector})
		force.Variations = append(force.Variations, v1alpha1.EffectiveVariation{Name: v, Selector: selector, Weight: new(int32(0)), Reserved: new(int32(10_000 * i))}) //nolint:gosec // two
		address := netip.AddrFrom4([4]byte{13, byte(c.shape.Service(t) >> 8), byte(c.shape.Service(t)), byte(i)})
		if err := c.run(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-" + string(v), Labels: labels}}, address); err != nil {
			return err
		}
	}
	if err := c.create(ctx, r); err != nil {
		return err
	}
	r.Status.Effective = force
	c.releases[t] = r
	return c.Step(ctx, t)
}

// run a pod: it is ready at an address.
func (c *Cluster) run(ctx context.Context, p *corev1.Pod, address netip.Addr) error {
	p.Spec.Containers = []corev1.Container{{Name: "app", Image: "app", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}}}
	if err := c.create(ctx, p); err != nil {
		return err
	}
	p.Status.Phase, p.Status.PodIP, p.Status.PodIPs = corev1.PodRunning, address.String(), []corev1.PodIP{{IP: address.String()}}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if err := c.admin.Status().Update(ctx, p); err != nil {
		return fmt.Errorf("running a pod: %w", err)
	}
	return nil
}

// Sequence of the last decision about a target.
func (c *Cluster) Sequence(t world.Target) int64 { return c.releases[t].Status.Effective.Sequence }

// Step gives the canary of a target another weight, as a leader does that has decided so.
func (c *Cluster) Step(ctx context.Context, t world.Target) error {
	r := c.releases[t]
	force := r.Status.Effective
	force.Sequence++
	canary := int32(force.Sequence % 5_000) //nolint:gosec // less than that
	force.Variations[0].Weight, force.Variations[1].Weight = new(10_000-canary), new(canary)
	if err := c.admin.Status().Update(ctx, r); err != nil {
		return fmt.Errorf("deciding: %w", err)
	}
	return nil
}

// Decision is one about a target, as a watch shows it.
type Decision struct {
	Target   world.Target
	Sequence int64
	At       time.Time
}

// Follow tells of each decision when a watch of the API server shows it, until ctx ends.
func (c *Cluster) Follow(ctx context.Context) (<-chan Decision, error) {
	w, err := c.admin.Watch(ctx, &v1alpha1.ABReleaseList{})
	if err != nil {
		return nil, fmt.Errorf("watching releases: %w", err)
	}
	targets := map[client.ObjectKey]world.Target{}
	for t, r := range c.releases {
		targets[client.ObjectKeyFromObject(r)] = t
	}
	shown := make(chan Decision, 1000) // more than there are at once
	go func() {
		defer close(shown)
		defer w.Stop()
		for event := range w.ResultChan() {
			if r, is := event.Object.(*v1alpha1.ABRelease); is && r.Status.Effective != nil {
				shown <- Decision{targets[client.ObjectKeyFromObject(r)], r.Status.Effective.Sequence, time.Now()}
			}
		}
	}()
	return shown, nil
}

// Replace so many pods of services per second, until ctx ends: each time a pod comes and is ready, the
// EndpointSlice of its service has it in place of another, and a pod goes. The result is how many.
func (c *Cluster) Replace(ctx context.Context, perSecond int) (n int, err error) {
	next := time.NewTicker(time.Second / time.Duration(perSecond))
	defer next.Stop()
	var group errgroup.Group
	group.SetLimit(writers)
	busy := make([]sync.Mutex, len(c.slices))
	for {
		select {
		case <-next.C:
			n++
			group.Go(func() error { return c.replace(context.WithoutCancel(ctx), n, busy) })
		case <-ctx.Done():
			return n, group.Wait()
		}
	}
}

// replace the first endpoint of a service by a new pod.
func (c *Cluster) replace(ctx context.Context, n int, busy []sync.Mutex) error {
	i := c.shape.Dependencies + 2 + n*7%(c.shape.Services-c.shape.Dependencies-2) // no target
	busy[i].Lock()
	defer busy[i].Unlock()
	slice := c.slices[i]
	address := netip.AddrFrom4([4]byte{14, byte(n >> 16), byte(n >> 8), byte(n)})
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: slice.Namespace, Name: fmt.Sprint("pod-", n)}}
	if err := c.run(ctx, p, address); err != nil {
		return err
	}
	slice.Endpoints[0] = endpointAt(address)
	return errors.Join(c.admin.Update(ctx, slice), c.admin.Delete(ctx, p, client.GracePeriodSeconds(0)))
}
