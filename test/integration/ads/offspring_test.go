// SPDX-License-Identifier: Apache-2.0

//go:build integration

package ads

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
	"github.com/plumbline-dev/plumbline/test/harness/child"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// A test's own binary is the server as well, as a process that can be killed.
const offspringVariable = "PLUMBLINE_TEST_DISCOVERY"

func TestMain(m *testing.M) {
	if text := os.Getenv(offspringVariable); text != "" {
		if err := beOffspring(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// long says that those tests are wanted in full that take long.
func long() bool { return os.Getenv("PLUMBLINE_XDS") == "long" }

// state is all that a server is told, and says what it serves.
type state struct {
	// Address where it listens, with a certificate and a key.
	Address, Certificate, Key string
	// Front is where a proxy listens, A and B are upstreams.
	Front, A, B string
	// Weight is the share of B, which without one is not there.
	Sequence uint64
	Weight   uint32
}

func (s *state) steps(weight uint32) { s.Sequence, s.Weight = s.Sequence+1, weight }

func (s *state) route() *ads.Resource {
	if s.Weight == 0 {
		return route("web", s.Sequence, share{"web|a", 10_000})
	}
	return route("web", s.Sequence, share{"web|b", s.Weight}, share{"web|a", 10_000 - s.Weight})
}

func (s *state) resources() []*ads.Resource {
	all := []*ads.Resource{listener(s.Front, "web"), cluster("web|a"), endpoints("web|a", s.A), s.route()}
	if s.Weight > 0 {
		all = append(all, cluster("web|b"), endpoints("web|b", s.B))
	}
	return all
}

// versions are what a proxy should have, as [dumped] tells them.
func (s *state) versions() (all []string) {
	for _, r := range s.resources() {
		text := r.Version.Hash // of a route that is the same in a later version Envoy shows the first
		if r.Type == ads.Endpoints {
			text = map[string]string{"web|a": s.A, "web|b": s.B}[r.Name]
		}
		all = append(all, fmt.Sprint(r.Type, " ", r.Name, " ", text))
	}
	slices.Sort(all)
	return all
}

// keep a certificate where the server finds it.
func (s *state) keep(t testing.TB, serving tls.Certificate) {
	t.Helper()
	key, err := x509.MarshalECPrivateKey(serving.PrivateKey.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	s.Certificate, s.Key = filepath.Join(directory, "tls.crt"), filepath.Join(directory, "tls.key")
	for path, block := range map[string]*pem.Block{s.Certificate: {Type: "CERTIFICATE", Bytes: serving.Certificate[0]}, s.Key: {Type: "EC PRIVATE KEY", Bytes: key}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// offspring is a server in a process of its own.
type offspring struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	ended chan struct{}

	mu     sync.Mutex
	heard  map[string]bool
	change chan struct{} // closed when something was heard
}

func (s *state) start(t testing.TB) *offspring {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	o := &offspring{cmd: child.Bind(exec.Command(os.Args[0])), heard: map[string]bool{}, change: make(chan struct{}), ended: make(chan struct{})}
	o.cmd.Env = append(os.Environ(), offspringVariable+"="+string(text))
	o.cmd.Stderr = os.Stderr
	out, err := o.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if o.in, err = o.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := o.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go o.listen(out)
	t.Cleanup(o.kill)
	return o
}

// listen to what it has heard from proxies.
func (o *offspring) listen(out io.Reader) {
	defer close(o.ended)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		o.mu.Lock()
		o.heard[lines.Text()] = true
		close(o.change)
		o.change = make(chan struct{})
		o.mu.Unlock()
	}
}

// kill it, as the kernel does for want of memory.
func (o *offspring) kill() {
	_ = o.cmd.Process.Kill() // it may have been already
	<-o.ended
	_ = o.cmd.Wait() // that it was killed
}

// publish another state.
func (o *offspring) publish(s state) {
	text, err := json.Marshal(s)
	if err == nil {
		_, _ = fmt.Fprintf(o.in, "%s\n", text) // nobody may be there any more
	}
}

// told is closed when a proxy has acknowledged a resource to it, or when it has ended.
func (o *offspring) told(r *ads.Resource) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			heard, change := o.has(r)
			if heard {
				return
			}
			select {
			case <-change:
			case <-o.ended:
				return
			}
		}
	}()
	return done
}

// has says that it was heard, or when to look again.
func (o *offspring) has(r *ads.Resource) (heard bool, change <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.heard[acknowledgment(r)], o.change
}

// acked waits until one has.
func (o *offspring) acked(t testing.TB, r *ads.Resource) {
	t.Helper()
	poll.Receive(t, patience, "a proxy acknowledges "+acknowledgment(r), o.told(r))
	if heard, _ := o.has(r); !heard {
		t.Fatalf("the server ended before a proxy acknowledged %s", acknowledgment(r))
	}
}

func acknowledgment(r *ads.Resource) string { return fmt.Sprint(r.Type, " ", r.Name, " ", r.Version) }

// teller says what proxies have acknowledged.
type teller struct{ *world }

// Happened implements serve.Observer.
func (teller) Happened(_ identity.Proxy, e ads.Effect) {
	if acked, is := e.(ads.Acked); is {
		for _, r := range acked.Resources {
			fmt.Println(acknowledgment(r)) // it is read
		}
	}
}

// beOffspring serves what it is told, line by line, until it is killed.
func beOffspring(text string) error {
	var s state
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&s); err != nil {
		return err
	}
	certificate, err := tls.LoadX509KeyPair(s.Certificate, s.Key)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", s.Address) //nolint:noctx // as a server would
	if err != nil {
		return err
	}
	t := teller{&world{group: serve.NewGroup(nil)}}
	g := grpc.NewServer(append(serve.Options(), grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"},
	})))...)
	serve.New(serve.Config{}, t, serve.NewProofs(), missing, t).Register(g)
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			var next state
			if json.Unmarshal(lines.Bytes(), &next) == nil {
				t.publish(next.resources()...)
			}
		}
	}()
	return g.Serve(l)
}
