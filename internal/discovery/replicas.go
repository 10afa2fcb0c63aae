// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/peers"
)

// Component is the value of the label app.kubernetes.io/component that pods of the
// discovery server have.
const (
	Component      = "xds"
	componentLabel = "app.kubernetes.io/component"
)

// PeerAudience is that of the tokens which replicas show each other.
const PeerAudience = "plumbline-xds-peers"

// Replicas says how this replica is one of several. The zero Replicas is alone.
type Replicas struct {
	// Namespace and Name are those of its own pod.
	Namespace, Name string
	// Port is where the others serve.
	Port int
	// ServerName is what their certificate is for, and Roots who vouches for it.
	ServerName string
	Roots      func() *x509.CertPool
	// TokenFile has the token that is shown to them; it is read each time.
	TokenFile string
}

func (r Replicas) alone() bool { return r.Name == "" }

func (r Replicas) validate() error {
	if !r.alone() && (r.Namespace == "" || r.Port == 0 || r.ServerName == "" || r.Roots == nil || r.TokenFile == "") {
		return errors.New("a replica among others needs Namespace, Port, ServerName, Roots and TokenFile")
	}
	return nil
}

func (r Replicas) tls() (*tls.Config, error) {
	roots := r.Roots()
	if roots == nil {
		return nil, errors.New("there is no authority yet that vouches for replicas")
	}
	return &tls.Config{RootCAs: roots, ServerName: r.ServerName, MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}}, nil
}

func (r Replicas) token() (string, error) {
	text, err := os.ReadFile(r.TokenFile)
	if err != nil {
		return "", fmt.Errorf("reading the token for replicas: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// following follows all other replicas, from their pods.
type following struct {
	Replicas
	pods func(ctx context.Context) ([]corev1.Pod, error)
	// age is how old the watches of this replica are.
	age func() time.Duration
	// orders are what the others are ordered.
	orders *orders
	clock  clock.WithTicker
	log    logr.Logger

	mu     sync.Mutex
	others map[string]*other // by the pod's name
	// known says that it is followed, and known who there is.
	known bool
}

// other is another replica.
type other struct {
	address string
	mirror  *peers.Mirror
	stop    context.CancelFunc
	failed  string
}

// lookAround is how often it is looked which replicas there are.
const lookAround = time.Second

// run follows them until ctx ends.
func (f *following) run(ctx context.Context) {
	if f.alone() {
		<-ctx.Done()
		return
	}
	var streams sync.WaitGroup
	defer streams.Wait()
	defer f.end()
	ticker := f.clock.NewTicker(lookAround)
	defer ticker.Stop()
	for {
		pods, err := f.pods(ctx)
		if err != nil && ctx.Err() == nil {
			f.log.Error(err, "looking which replicas there are")
		}
		if err == nil {
			f.look(ctx, &streams, pods)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

// look follows those that are there, and no others.
func (f *following) look(ctx context.Context, streams *sync.WaitGroup, pods []corev1.Pod) {
	there := map[string]string{}
	for i := range pods {
		if address := f.address(&pods[i]); address != "" {
			there[pods[i].Name] = address
		}
	}
	f.leave(there)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known = true
	for name, address := range there {
		if f.others[name] != nil {
			continue
		}
		own, stop := context.WithCancel(ctx)
		o := &other{address: address, mirror: peers.NewMirror(), stop: stop}
		f.others[name] = o
		follower := peers.Follower{TLS: f.tls, Token: f.token, Age: f.age, Orders: f.orders.all, Changed: f.orders.changed, Failed: func(_ string, err error) { f.fails(name, o, err) }}
		streams.Go(func() { follower.Follow(own, address, o.mirror) })
	}
}

// address of a replica that may have proxies; empty if it can have none, or is this one.
// One that is not ready may still have those that it had.
func (f *following) address(pod *corev1.Pod) string {
	if pod.Name == f.Name || pod.Status.Phase != corev1.PodRunning || len(pod.Status.PodIPs) == 0 {
		return ""
	}
	return net.JoinHostPort(pod.Status.PodIPs[0].IP, strconv.Itoa(f.Port))
}

// end follows nobody any more.
func (f *following) end() {
	f.leave(nil)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known = false
}

// leave those that are not there, or are elsewhere.
func (f *following) leave(there map[string]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, o := range f.others {
		if there[name] != o.address {
			o.stop()
			delete(f.others, name)
		}
	}
}

// fails tells why a replica cannot be followed, when that is new.
func (f *following) fails(name string, o *other, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if text := err.Error(); text != o.failed {
		o.failed = text
		f.log.Info("another replica is not followed; it is asked again", "replica", name, "error", text)
	}
}

// all of them, by name; false when it is not known who there is.
func (f *following) all() (map[string]*peers.Mirror, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	mirrors := make(map[string]*peers.Mirror, len(f.others))
	for name, o := range f.others {
		mirrors[name] = o.mirror
	}
	return mirrors, f.known || f.alone()
}

// replicas are the pods of the discovery server.
func (s *sources) replicas(namespace string) func(context.Context) ([]corev1.Pod, error) {
	return func(ctx context.Context) ([]corev1.Pod, error) {
		var pods corev1.PodList
		err := s.list(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{componentLabel: Component})
		return pods.Items, err
	}
}
