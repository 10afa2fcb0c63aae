// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// Before everything that begins with all objects, and before nothing else.
func TestAListIsToldBeforeItIsMade(t *testing.T) {
	var order []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		order = append(order, "request")
		_, _ = w.Write([]byte(`{"metadata":{"resourceVersion":"1"},"items":[]}`))
	}))
	defer server.Close()
	client, err := rest.UnversionedRESTClientFor(&rest.Config{
		Host: server.URL, ContentConfig: rest.ContentConfig{NegotiatedSerializer: scheme.Codecs.WithoutConversion()},
	})
	must(t, err)
	lw := &listWatch{
		client: client, resource: Resource{GVK: deployments, Plural: "deployments"},
		intake: intake{keep: whole}, report: func(error) {},
		listing: func(_ context.Context, r Resource) { order = append(order, "about to list "+r.Plural) },
	}
	yes := true
	for name, test := range map[string]struct {
		do   func() error
		want []string
	}{
		"a list": {
			func() error { _, err := lw.ListWithContext(t.Context(), metav1.ListOptions{}); return err },
			[]string{"about to list deployments", "request"},
		},
		"a watch that begins with all objects": {
			func() error {
				return stopped(lw.WatchWithContext(t.Context(), metav1.ListOptions{SendInitialEvents: &yes}))
			},
			[]string{"about to list deployments", "request"},
		},
		"a watch that goes on": {
			func() error {
				return stopped(lw.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "1"}))
			},
			[]string{"request"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			order = nil
			must(t, test.do())
			if diff := cmp.Diff(test.want, order); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func stopped(w interface{ Stop() }, err error) error {
	if err == nil {
		w.Stop()
	}
	return err
}
