// SPDX-License-Identifier: Apache-2.0

// Package kubelet stands for the kubelet of a node, for tests with an API server and no
// nodes: the API server reaches it by the node's status, and asks it to forward ports of
// the pods that are bound to the node.
package kubelet

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Start a kubelet with a node of this name. Both end with the test.
func Start(t *testing.T, api client.Client, name string, dial Dial) {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/portForward/{namespace}/{pod}", dial)
	mux.Handle("/portForward/{namespace}/{pod}/{uid}", dial)
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := api.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := api.Delete(context.WithoutCancel(t.Context()), node); err != nil {
			t.Error(err)
		}
	})
	at, is := server.Listener.Addr().(*net.TCPAddr)
	if !is {
		t.Fatalf("the kubelet listens at %s", server.Listener.Addr())
	}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: at.IP.String()}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(at.Port) //nolint:gosec // a port
	if err := api.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
}
