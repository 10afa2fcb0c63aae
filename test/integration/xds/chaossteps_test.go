// SPDX-License-Identifier: Apache-2.0

//go:build integration

package xds

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
)

// event is one of the things that happen, and how often it does beside the others.
type event struct {
	weight int
	play   func(*chaos)
}

// events by weight; an event comes every half a second, so a weight of 50 of 100 is once a second.
func events() []event {
	return []event{
		{25, (*chaos).shift},
		{13, (*chaos).comeOrLeave},
		{12, (*chaos).cut},
		{4, (*chaos).part},
		{6, (*chaos).endServer},
		{1, (*chaos).apiServerDies},
		{12, (*chaos).canaryDies},
		{11, (*chaos).canaryMoves},
		{3, (*chaos).canaryGoes},
		{6, (*chaos).stableDies},
		{7, (*chaos).stableMoves},
	}
}

// step plays one event.
func (c *chaos) step() {
	c.Helper()
	all, sum := events(), 0
	for _, e := range all {
		sum += e.weight
	}
	for n, i := c.random.IntN(sum), 0; ; i++ {
		if n -= all[i].weight; n < 0 {
			all[i].play(c)
			return
		}
	}
}

// shift gives the canary more, or at times less.
func (c *chaos) shift() {
	share := min(100, c.share+5*(1+c.random.IntN(6)))
	if c.share == 100 || c.chance(4) {
		share = 5 * c.random.IntN(1+c.share/5)
	}
	c.divide(share)
}

// divide so that the canary has a share. Users may be moved back if it shrinks.
func (c *chaos) divide(share int) {
	c.Helper()
	if share < c.share {
		c.liberate()
	}
	c.tell("the canary shall have %d %%, had %d %%", share, c.share)
	c.share = share
	c.shop.shift(c.release, share)
}

// comeOrLeave puts the guest into the mesh, or takes it out.
func (c *chaos) comeOrLeave() {
	label := `"true"`
	if c.joined {
		label = "null"
	}
	c.joined = !c.joined
	c.tell("the guest is in the mesh: %t", c.joined)
	patch := fmt.Sprintf(`{"metadata": {"labels": {%q: %s}}}`, ir.Managed, label)
	c.must(c.c.admin.Patch(c.Context(), &corev1.Service{ObjectMeta: c.named(c.guest.Name)}, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// cut breaks the connections of a proxy to the discovery server.
func (c *chaos) cut() {
	n := c.random.IntN(len(c.proxies))
	c.tell("the streams of proxy %d break", n)
	c.proxies[n].way.Cut()
}

// part a proxy from all discovery servers for a while.
func (c *chaos) part() {
	n := c.random.IntN(len(c.proxies))
	c.tell("proxy %d can reach no server", n)
	c.proxies[n].away = true
	c.lead()
	c.proxies[n].way.Cut()
}

// endServer kills a replica, or lets it end by itself at times.
func (c *chaos) endServer() {
	c.Helper()
	s := c.seats[c.random.IntN(len(c.seats))]
	force := !c.chance(3)
	c.tell("%s is ended, by force: %t", s.name, force)
	s.end(force)
	c.lead()
}

// apiServerDies and is there again when the stable version and the canary have lost an application.
func (c *chaos) apiServerDies() {
	c.Helper()
	c.tell("the API server is killed")
	c.must(apiserver.Kill(c.c.server))
	c.canaryDies()
	c.stableDies()
	c.must(apiserver.Revive(c.c.server))
	c.tell("the API server is there again")
}

// another instance of a version, with an address of its own.
func (c *chaos) another(version string) *instance {
	c.Helper()
	c.made++
	return c.instance(fmt.Sprintf("web-%s-%d", version, c.made), version)
}

// canaryDies: an application of the canary ends, and its pod stays.
func (c *chaos) canaryDies() {
	c.Helper()
	if len(c.canary) > 0 {
		i := c.canary[c.random.IntN(len(c.canary))]
		c.withoutCanary(i)
		c.die(i)
	}
}

// withoutCanary frees the users if proxies may need an instance of the canary.
func (c *chaos) withoutCanary(i *instance) {
	c.Helper()
	if i.lives && !c.spares("canary", c.canary, i) {
		c.liberate()
	}
}

func (c *chaos) die(i *instance) {
	c.Helper()
	if !i.lives {
		return
	}
	c.tell("%s ends", i.pod.Name)
	i.die()
}

// canaryMoves: another pod takes the place of one.
func (c *chaos) canaryMoves() {
	c.Helper()
	if len(c.canary) == 0 {
		return
	}
	n := c.random.IntN(len(c.canary))
	c.withoutCanary(c.canary[n])
	c.move(c.canary, n, "canary")
}

// move puts another pod into the place of one, in any order of what belongs to that.
func (c *chaos) move(of []*instance, n int, version string) {
	c.Helper()
	before := of[n]
	parts := []func(){
		func() { of[n] = c.another(version) },
		func() { c.remove(before) },
		func() { c.die(before) },
	}
	for _, part := range c.random.Perm(len(parts)) {
		parts[part]()
	}
	c.tell("%s is in the place of %s", of[n].pod.Name, before.pod.Name)
}

// remove the pod of an instance from the API server.
func (c *chaos) remove(i *instance) {
	c.Helper()
	c.tell("pod %s is deleted", i.pod.Name)
	c.must(c.c.admin.Delete(c.Context(), i.pod, client.GracePeriodSeconds(0)))
}

// canaryGoes with all of its pods.
func (c *chaos) canaryGoes() {
	c.Helper()
	c.liberate()
	for _, i := range c.canary {
		if c.chance(2) {
			c.die(i)
			c.remove(i)
			continue
		}
		c.remove(i)
		c.die(i)
	}
	c.canary = nil
}

// stableDies: an application of the stable version ends, and its pod stays. Proxies reach two
// others: the share of the stable version goes to no other.
func (c *chaos) stableDies() {
	c.Helper()
	if i := c.stable[c.random.IntN(len(c.stable))]; c.stableCanSpare(i) {
		c.die(i)
	}
}

// stableMoves: another pod takes the place of one, likewise.
func (c *chaos) stableMoves() {
	c.Helper()
	if n := c.random.IntN(len(c.stable)); c.stableCanSpare(c.stable[n]) {
		c.move(c.stable, n, "stable")
	}
}

// stableCanSpare an instance if all of them live, and proxies know two others.
func (c *chaos) stableCanSpare(i *instance) bool {
	c.Helper()
	if slices.ContainsFunc(c.stable, func(i *instance) bool { return !i.lives }) {
		return false
	}
	for _, p := range c.proxies {
		hosts, err := p.hosts("web", "stable")
		c.must(err)
		known := 0
		for _, other := range c.stable {
			if _, is := hosts[other.Address]; is && other != i {
				known++
			}
		}
		if known < 2 || len(hosts) > len(c.stable) {
			return false
		}
	}
	return true
}
