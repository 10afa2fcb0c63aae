// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// Dial opens a connection to a port within a pod.
type Dial func(ctx context.Context, namespace, pod, port string) (net.Conn, error)

// ServeHTTP forwards the ports of the pod that the path names.
func (d Dial) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	Forward(w, r, func(port string) (net.Conn, error) {
		return d(ctx, r.PathValue("namespace"), r.PathValue("pod"), port)
	})
}

// Forward answers a request for the ports of a pod as kubelets do, until the client ends it.
func Forward(w http.ResponseWriter, r *http.Request, dial func(port string) (net.Conn, error)) {
	if _, err := httpstream.Handshake(r, w, []string{portforward.PortForwardV1Name}); err != nil {
		return // the client was told
	}
	f := &forwarding{waiting: map[string]httpstream.Stream{}, dial: dial}
	connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, f.opened)
	if connection == nil {
		return // the client was told
	}
	<-connection.CloseChan()
	_ = connection.Close() // the client has closed it
	f.running.Wait()
}

// forwarding pairs the streams of one client.
type forwarding struct {
	dial    func(port string) (net.Conn, error)
	running sync.WaitGroup

	mu sync.Mutex
	// waiting are streams of errors whose data has not come, by request.
	waiting map[string]httpstream.Stream
}

// opened takes a stream. That of the errors comes first.
func (f *forwarding) opened(stream httpstream.Stream, _ <-chan struct{}) error {
	request := stream.Headers().Get(corev1.PortForwardRequestIDHeader)
	f.mu.Lock()
	defer f.mu.Unlock()
	if stream.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
		f.waiting[request] = stream
		return nil
	}
	failures, found := f.waiting[request]
	if !found {
		return fmt.Errorf("request %s has no stream of errors", request)
	}
	delete(f.waiting, request)
	f.running.Go(func() { f.carry(stream, failures) })
	return nil
}

// carry bytes both ways until the port, or the client, ends.
func (f *forwarding) carry(data, failures httpstream.Stream) {
	defer func() { _, _ = data.Close(), failures.Close() }() // the client may be gone
	port, err := f.dial(data.Headers().Get(corev1.PortHeader))
	if err != nil {
		_, _ = fmt.Fprintf(failures, "error forwarding the port: %v", err) // likewise
		return
	}
	var sent sync.WaitGroup
	defer sent.Wait()
	defer port.Close()
	sent.Go(func() {
		_, _ = io.Copy(port, data) // it ends with either of them
		_ = port.Close()
	})
	_, _ = io.Copy(data, port)
	_ = data.Reset() // so that what the client sends ends too
}
