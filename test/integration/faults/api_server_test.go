// SPDX-License-Identifier: Apache-2.0

//go:build integration

package faults

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/faultproxy"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/server"
	"github.com/plumbline-dev/plumbline/test/harness/waits"
)

// startTime is how long a part of a control plane may take to start on a busy
// machine.
const startTime = 90 * time.Second

// ownCluster is a cluster of one test, whose API server can be restarted;
// options may change it before it starts.
func ownCluster(t *testing.T, options ...apiserver.Option) *cluster {
	t.Helper()
	s, err := apiserver.Start(append([]apiserver.Option{apiserver.CertificatesIn(t.TempDir())}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("stopping the API server: %v", err)
		}
	})
	s.Config.QPS = -1
	c, err := install(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// address is host:port of the API server.
func (c *cluster) address(t *testing.T) string {
	t.Helper()
	u, err := url.Parse(c.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// proxied is a way to a TCP server that can be broken, until the test ends.
func proxied(t *testing.T, address string) *faultproxy.Proxy {
	t.Helper()
	p, err := faultproxy.Start("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// alive checks that a process has not ended.
func (w *world) alive(p *server.Process) {
	w.t.Helper()
	if err := p.Signal(syscall.Signal(0)); err != nil {
		w.t.Errorf("the process has ended: %v\n%s", err, p.Said())
	}
}

// TestFaultsOfTheAPIServer breaks one API server again and again.
func TestFaultsOfTheAPIServer(t *testing.T) {
	c := ownCluster(t)
	t.Run("killed and restarted while people write, every write is judged as if it had not been", func(t *testing.T) { restarted(t, c) })
	t.Run("at two seconds an answer, it is late and never wrong", func(t *testing.T) { slow(t, c) })
	t.Run("connections that carry nothing any more are noticed within a minute", func(t *testing.T) { silent(t, c) })
	t.Run("of two, a stale one makes an assessor late and never wrong", func(t *testing.T) { stale(t, c) })
	t.Run("with the kind of guards deleted and made again, what drifted meanwhile is drift", func(t *testing.T) { guardsLost(t, c) })
	t.Run("with the kind of Baselines deleted and made again, nothing is authorized silently", func(t *testing.T) { baselinesLost(t, c) })
}

// insist repeats a write until the API server has carried it out.
func insist(ctx context.Context, write func(context.Context) error) error {
	var refused error
	err := waits.Until(ctx, startTime, "the API server carries out a write", func(ctx context.Context) error {
		one, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		err := write(one)
		if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
			refused = err
			return nil
		}
		return err
	})
	return errors.Join(err, refused)
}

// restarted has one write after the other made, each to another object, while
// the API server goes away and comes back: no gap hides more than one write of
// one object, so each must be attributed exactly.
func restarted(t *testing.T, c *cluster) {
	const objects = 24
	w := c.newWorld(t)
	h, stop := w.record()
	p := w.assessor("")
	w.UnderGuard()
	name := func(i int) string { return fmt.Sprint("web-", i) }
	for i := range objects {
		w.Deploy(ci, name(i))
	}
	for i := range objects {
		w.untilAuthorized(name(i), 1)
	}
	// A third of the writes is made before, a third into the outage.
	ciClient, aliceClient := w.As(ci), w.As(alice)
	third, written := make(chan struct{}), make(chan error, 1)
	go func() {
		var failed error
		for i := range objects {
			if i == objects/3 {
				close(third)
			}
			by, image := ciClient, "registry.example/shop:2"
			if i%2 == 1 {
				by, image = aliceClient, evilImage
			}
			failed = errors.Join(failed, insist(t.Context(), func(ctx context.Context) error {
				return by.Patch(ctx, w.Named(name(i)), guarded.ImagePatch(image))
			}))
		}
		written <- failed
	}()
	<-third
	w.Must(apiserver.Restart(c.server))
	w.Must(<-written)
	for i := range objects {
		if i%2 == 0 {
			w.untilAuthorized(name(i), 2)
		} else {
			w.UntilIs(name(i), evil)
		}
	}
	// The watch goes on.
	w.Deploy(ci, "after")
	w.untilAuthorized("after", 1)
	w.alive(p)
	stop()
	for i := range objects {
		if i%2 == 0 {
			h.only(name(i), inSync)
		} else {
			h.only(name(i), inSync, evil)
		}
	}
}

// slow starts an assessor while every answer takes two seconds.
func slow(t *testing.T, c *cluster) {
	long(t)
	w := c.newWorld(t)
	h, stop := w.record()
	p := w.assessor("")
	w.UnderGuard()
	for _, name := range []string{"web", "drifts", "quiet"} {
		w.Deploy(ci, name)
		w.untilAuthorized(name, 1)
	}
	w.Must(p.Stop())
	w.SetImage(alice, "drifts", evilImage)
	way := proxied(t, c.address(t))
	way.Set(faultproxy.Fault{Delay: time.Second}) // each way
	p = w.assessor("https://" + way.Address())
	w.UntilIs("drifts", evil)
	w.SetImage(ci, "web", "registry.example/shop:2")
	w.untilAuthorized("web", 2)
	w.SetImage(alice, "drifts", guarded.Image)
	w.UntilIs("drifts", inSync)
	w.UntilIs("quiet", inSync)
	w.alive(p)
	stop()
	h.only("web", inSync)
	h.only("quiet", inSync)
	h.only("drifts", inSync, evil)
}

// silent lets the open connections of the assessor stay open and carry nothing:
// what a middlebox does that forgot them. No error tells of it; the HTTP/2 health
// check does, which pings after 30 s of silence and waits 15 s for the answer
// (k8s.io/apimachinery/pkg/util/net, the defaults of client-go).
func silent(t *testing.T, c *cluster) {
	long(t)
	// Without it a quarter of an hour goes by until TCP gives up.
	const bound = 2 * (45*time.Second + 15*time.Second) // and to connect and list anew
	w := c.newWorld(t)
	h, stop := w.record()
	way := proxied(t, c.address(t))
	p := w.assessor("https://" + way.Address())
	w.UnderGuard()
	for _, name := range []string{"web", "drifts", "quiet"} {
		w.Deploy(ci, name)
		w.untilAuthorized(name, 1)
	}
	if way.Abandon() == 0 {
		t.Fatal("no connection was open")
	}
	w.SetImage(alice, "drifts", evilImage)
	w.SetImage(ci, "web", "registry.example/shop:2")
	w.within(bound, "the drift is found", func() error {
		b, err := w.Baseline("drifts")
		if err != nil {
			return err
		}
		return guarded.Reads(evil)(b)
	})
	w.untilAuthorized("web", 2)
	w.alive(p)
	stop()
	h.only("web", inSync)
	h.only("quiet", inSync)
	h.only("drifts", inSync, evil)
}

// second starts another API server on the same etcd, behind a way that can be
// broken.
func (c *cluster) second(t *testing.T) (*cluster, *faultproxy.Proxy) {
	t.Helper()
	first := c.server.ControlPlane
	way := proxied(t, first.Etcd.URL.Host)
	plane := envtest.ControlPlane{APIServer: &envtest.APIServer{
		Path: first.APIServer.Path, CertDir: t.TempDir(), StartTimeout: startTime, StopTimeout: startTime,
		EtcdURL: &url.URL{Scheme: "http", Host: way.Address()},
	}}
	if err := plane.APIServer.Start(); err != nil {
		t.Fatalf("starting the second API server: %v", err)
	}
	t.Cleanup(func() {
		way.Set(faultproxy.Fault{})
		if err := plane.APIServer.Stop(); err != nil {
			t.Errorf("stopping the second API server: %v", err)
		}
	})
	user, err := plane.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, &rest.Config{QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{Cluster: &guarded.Cluster{Config: user.Config()}}, way
}

// stale has an assessor work through an API server whose way to etcd is held up,
// and be started anew against it, while another one works through the other.
func stale(t *testing.T, c *cluster) {
	long(t)
	w := c.newWorld(t)
	h, stop := w.record()
	b, etcd := c.second(t)
	late := w.assessorOf(b)
	w.UnderGuard()
	names := []string{"web", "drifts", "quiet", "heals"}
	for _, name := range names {
		w.Deploy(ci, name)
		w.untilAuthorized(name, 1)
	}
	w.SetImage(alice, "heals", evilImage)
	w.UntilIs("heals", evil)
	etcd.Set(faultproxy.Fault{Hold: true})
	w.SetImage(ci, "web", "registry.example/shop:2")
	w.SetImage(alice, "drifts", evilImage)
	w.SetImage(alice, "heals", guarded.Image)
	w.Must(late.Kill())
	// What it is told now is of the past: the first lists come from memory.
	late = b.startProcess(t, "assessor", assessorUser, "--leader-elect=false", "--api-server-metrics=0", "--digest-key-file="+digestKey(t))
	other := w.assessor("")
	w.untilAuthorized("web", 2)
	w.UntilIs("drifts", evil)
	w.UntilIs("heals", inSync)
	w.Must(other.Stop())
	etcd.Set(faultproxy.Fault{})
	w.ready(late)
	// It catches up and goes on alone.
	w.SetImage(alice, "quiet", evilImage)
	w.UntilIs("quiet", evil)
	w.untilAuthorized("web", 2)
	w.UntilIs("drifts", evil)
	w.UntilIs("heals", inSync)
	w.alive(late)
	stop()
	h.only("web", inSync)
	h.only("drifts", inSync, evil)
	h.only("heals", inSync, evil)
	h.only("quiet", inSync, evil)
	if n := len(w.revisions("web")); n != 2 {
		t.Errorf("%d revisions of web are stored, want 2", n)
	}
}

// assessorOf starts an assessor that talks to another API server of the cluster.
func (w *world) assessorOf(c *cluster) *server.Process {
	w.t.Helper()
	p := c.startProcess(w.t, "assessor", assessorUser, assessorFlags(w.t)...)
	w.ready(p)
	return p
}

// allRevisions are the stored revisions of all objects of the namespace.
func (w *world) allRevisions() []v1alpha1.BaselineRevision {
	w.t.Helper()
	var list v1alpha1.BaselineRevisionList
	w.Must(w.c.Admin.List(w.Ctx(), &list, client.InNamespace(w.Name)))
	return list.Items
}

// revisions are those of one object.
func (w *world) revisions(name string) []v1alpha1.BaselineRevision {
	w.t.Helper()
	return slices.DeleteFunc(w.allRevisions(), func(r v1alpha1.BaselineRevision) bool {
		return r.Spec.BaselineName != baselineName(name)
	})
}
