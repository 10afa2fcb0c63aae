// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var (
	start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	names = []string{"plumbline-webhook.plumbline-system.svc", "127.0.0.1"}
)

// cluster is a naive model of what is around a Keeper: a Secret, two
// configurations, and replicas that serve what they have seen.
type cluster struct {
	t         testing.TB
	now       time.Time
	stored    map[string][]byte
	published [][]byte
	since     time.Time // when the stored bundle was first seen published
	seen      []byte
	leader    *Material // what the lease holder remembers
	writes    int
}

func newCluster(t testing.TB) *cluster {
	return &cluster{t: t, now: start, published: [][]byte{nil, nil}}
}

func (c *cluster) state() State {
	s := State{Remembered: c.leader, Published: c.published, Names: names, Settle: DefaultSettleTime}
	if c.stored != nil {
		s.Stored, _ = ParseMaterial(c.stored)
	}
	if s.Stored == nil || !published(c.published, Bundle(s.Stored.Authorities)) {
		c.seen, c.since = nil, time.Time{}
	} else if want := Bundle(s.Stored.Authorities); !bytes.Equal(c.seen, want) {
		c.seen, c.since = want, c.now
	}
	s.PublishedSince = c.since
	return s
}

// sync does what Keeper.keep does; check is called between the steps, where
// other replicas and API servers see the world.
func (c *cluster) sync(check func(step string)) Plan {
	state := c.state()
	plan := Decide(state, c.now)
	material := state.Stored
	if plan.Writes() {
		var err error
		if material, err = Carry(plan, state, c.now); err != nil {
			c.t.Fatal(err)
		}
		if c.stored, err = material.Data(); err != nil {
			c.t.Fatal(err)
		}
		c.leader = material
		c.writes++
		check("after the Secret was written")
	}
	for i := range c.published {
		c.published[i] = Bundle(material.Authorities)
	}
	check("after the bundle was published")
	return plan
}

// settle repeats until nothing is written, and fails when it never ends.
func (c *cluster) settle(check func(string)) {
	for range 10 {
		if !c.sync(check).Writes() {
			return
		}
	}
	c.t.Fatal("the plan asks for the same thing again and again")
}

func (c *cluster) served() *tls.Certificate {
	if c.leader == nil {
		return nil
	}
	return c.leader.Leaf
}

// callable says that an API server that trusts bundle can call a replica that
// serves leaf.
func callable(leaf *tls.Certificate, bundle []byte, now time.Time) bool {
	authorities, err := parseBundle(bundle)
	return err == nil && leaf != nil && verify(leaf, authorities, names, now) == nil
}

func none(string) {}

func TestAFreshInstallationMakesOneAuthorityAndOneLeaf(t *testing.T) {
	c := newCluster(t)
	c.settle(none)
	if c.writes != 1 {
		t.Errorf("%d writes, want 1", c.writes)
	}
	m, err := ParseMaterial(c.stored)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Authorities) != 1 || m.SignerKey == nil || !callable(m.Leaf, c.published[0], c.now) {
		t.Errorf("%d authorities, signer %v", len(m.Authorities), m.SignerKey != nil)
	}
	if life := m.Leaf.Leaf.NotAfter.Sub(c.now); life > LeafLife {
		t.Errorf("the leaf lives %v, more than %v", life, LeafLife)
	}
	if m.Leaf.Leaf.PublicKeyAlgorithm != x509.ECDSA || m.Authorities[0].PublicKeyAlgorithm != x509.ECDSA {
		t.Error("not ECDSA")
	}
}

func TestPlans(t *testing.T) {
	fresh := func(t *testing.T) *cluster {
		c := newCluster(t)
		c.settle(none)
		return c
	}
	tests := map[string]struct {
		change func(c *cluster)
		want   Plan // Keep and Next are looked at elsewhere
	}{
		"nothing to do": {func(*cluster) {}, Plan{}},
		"just before two thirds of the leaf's life": {func(c *cluster) { c.now = start.Add(LeafLife*2/3 - time.Second) }, Plan{}},
		"after two thirds of the leaf's life":       {func(c *cluster) { c.now = start.Add(LeafLife * 2 / 3) }, Plan{NewLeaf: true}},
		"the leaf has expired":                      {func(c *cluster) { c.now = start.Add(LeafLife) }, Plan{NewLeaf: true}},
		"after two thirds of the authority's life, with a leaf that still serves": {func(c *cluster) {
			c.now = start.Add(AuthorityLife*2/3 - time.Hour)
			c.settle(none)
			c.now = start.Add(AuthorityLife * 2 / 3)
		}, Plan{NewAuthority: true}},
		"after a long sleep nothing is left":      {func(c *cluster) { c.now = start.Add(2 * AuthorityLife) }, Plan{NewAuthority: true, NewLeaf: true}},
		"the Secret was deleted":                  {func(c *cluster) { c.stored = nil }, Plan{NewAuthority: true}},
		"the Secret was deleted while nobody ran": {func(c *cluster) { c.stored, c.leader = nil, nil }, Plan{NewAuthority: true, NewLeaf: true}},
		"the Secret was emptied":                  {func(c *cluster) { c.stored = map[string][]byte{} }, Plan{NewAuthority: true}},
		"the Secret holds rubbish":                {func(c *cluster) { c.stored = map[string][]byte{keyCABundle: []byte("rubbish")} }, Plan{NewAuthority: true}},
		"the authority's key is gone":             {func(c *cluster) { delete(c.stored, keyCAKey) }, Plan{NewAuthority: true}},
		"the authority's key is another's": {func(c *cluster) {
			other := newCluster(t)
			other.settle(none)
			c.stored[keyCAKey] = other.stored[keyCAKey]
		}, Plan{NewAuthority: true}},
		"the serving key is another's": {func(c *cluster) {
			other := newCluster(t)
			other.settle(none)
			c.stored[keyLeafKey] = other.stored[keyLeafKey]
		}, Plan{NewLeaf: true}},
		"the authority was made by a clock that was ahead": {func(c *cluster) { c.now = start.Add(-2 * time.Hour) }, Plan{NewAuthority: true, NewLeaf: true}},
		"the serving certificate was made by a clock that was ahead": {func(c *cluster) {
			m := c.state().Stored
			leaf, err := newLeaf(start.Add(48*time.Hour), names, m.Authorities[0], m.SignerKey)
			if err != nil {
				c.t.Fatal(err)
			}
			m.Leaf = leaf
			if c.stored, err = m.Data(); err != nil {
				c.t.Fatal(err)
			}
		}, Plan{NewLeaf: true}},
		"a bundle was emptied by a GitOps tool": {func(c *cluster) { c.published[1] = nil }, Plan{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := fresh(t)
			tc.change(c)
			got := Decide(c.state(), c.now)
			if got.NewAuthority != tc.want.NewAuthority || got.NewLeaf != tc.want.NewLeaf || got.DropOld != tc.want.DropOld {
				t.Errorf("got authority %v leaf %v drop %v, want %v %v %v", got.NewAuthority, got.NewLeaf, got.DropOld, tc.want.NewAuthority, tc.want.NewLeaf, tc.want.DropOld)
			}
			if !got.Writes() && !got.Next.After(c.now) {
				t.Errorf("next look at %v is not after %v", got.Next, c.now)
			}
			c.settle(none)
			for _, b := range c.published {
				if !callable(c.stateLeaf(), b, c.now) {
					t.Error("no call is possible afterwards")
				}
			}
		})
	}
}

func (c *cluster) stateLeaf() *tls.Certificate { return c.state().Stored.Leaf }

func TestAChangeOfAuthorityInterruptsNoCall(t *testing.T) {
	c := newCluster(t)
	c.settle(none)
	oldLeaf, oldBundle := c.served(), c.published[0]
	c.stored = nil // the operator's way to force it

	c.settle(none)
	if !bytes.Equal(c.served().Certificate[0], oldLeaf.Certificate[0]) {
		t.Fatal("the leaf was switched before the bundle had settled")
	}
	if authorities, _ := parseBundle(c.published[0]); len(authorities) != 2 {
		t.Fatalf("%d authorities are published, want the new and the old one", len(authorities))
	}
	c.now = start.Add(DefaultSettleTime - time.Second)
	c.settle(none)
	if !callable(c.served(), oldBundle, c.now) {
		t.Error("an API server that knows only the old authority cannot call")
	}
	c.now = start.Add(DefaultSettleTime)
	c.settle(none)
	if callable(c.served(), oldBundle, c.now) {
		t.Error("the leaf is still signed by the old authority")
	}
	if !callable(oldLeaf, c.published[0], c.now) {
		t.Error("a replica that is slow to switch cannot be called")
	}
	c.now = start.Add(LeafLife)
	c.settle(none)
	if authorities, _ := parseBundle(c.published[0]); len(authorities) != 1 {
		t.Errorf("%d authorities are left after a leaf's lifetime, want 1", len(authorities))
	}
}

func TestTheLeafWaitsForALaggingConfiguration(t *testing.T) {
	c := newCluster(t)
	c.settle(none)
	c.stored = nil
	c.settle(none)
	c.now = start.Add(time.Hour)
	c.published[1] = []byte("taken back")
	if plan := Decide(c.state(), c.now); plan.NewLeaf || !plan.Next.After(c.now) {
		t.Errorf("plan %+v", plan)
	}
}

// Whatever happens to Secret and bundles, and whenever we look: the leaf that
// was served before a step can be called with the bundle after it, and the other
// way round, as long as the process lived; in the end calls work.
func TestNoStepInterruptsCalls(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newCluster(t)
		c.settle(none)
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			// At most a day between two looks: the loop wakes for each due time.
			c.now = c.now.Add(time.Duration(rapid.IntRange(1, 24*3600).Draw(rt, "seconds")) * time.Second)
			switch rapid.IntRange(0, 7).Draw(rt, "event") {
			case 0:
				c.stored = nil
			case 1:
				delete(c.stored, keyCAKey)
			case 2:
				c.stored[keyCABundle] = []byte("x")
			}
			bundle, leaf := c.published[0], c.served()
			c.settle(func(step string) {
				if !callable(c.served(), bundle, c.now) {
					rt.Fatalf("%s: the new leaf under the old bundle", step)
				}
				if !callable(leaf, c.published[0], c.now) {
					rt.Fatalf("%s: the old leaf under the new bundle", step)
				}
				bundle, leaf = c.published[0], c.served()
			})
			if !callable(c.stateLeaf(), c.published[1], c.now) {
				rt.Fatal("calls do not work in the end")
			}
			if authorities, _ := parseBundle(c.published[0]); len(authorities) > maxAuthorities {
				rt.Fatalf("%d authorities in the bundle", len(authorities))
			}
		}
	})
}

func TestBundlePatchTouchesOnlyWhatDiffers(t *testing.T) {
	same := []byte("bundle")
	if patch := bundlePatch([]hook{{"a", same}, {"b", same}}, same); patch != nil {
		t.Errorf("patch %s for nothing", patch)
	}
	got := string(bundlePatch([]hook{{"a", same}, {"b", nil}}, same))
	want := `[{"op":"test","path":"/webhooks/1/name","value":"b"},{"op":"add","path":"/webhooks/1/clientConfig/caBundle","value":"YnVuZGxl"}]`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestServiceNames(t *testing.T) {
	got := ServiceNames("w", "n", []string{"z", "10.0.0.1"})
	want := []string{"w.n.svc", "w.n.svc.cluster.local", "w.n", "10.0.0.1", "z"}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
	if a, b := Identity(""), Identity(""); a == b {
		t.Error("two processes have one identity")
	}
	if Identity("pod-1") != "pod-1" {
		t.Error("a pod's identity is not its name")
	}
}
