// SPDX-License-Identifier: Apache-2.0

//go:build integration

package mesh

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// M2: a setting goes from the annotation of a Service to the proxies that run.
func TestASettingOfAServiceReachesItsProxies(t *testing.T) {
	d, s := discover(t), newShop(t)
	s.service("web", backend.Start(t, "one"))
	proxy, fronts := s.proxy(d, s.pod("front-0", nil), "web")
	backend.Answers(t, patience, fronts["web"], "200 one")
	service := &corev1.Service{}
	s.must(admin.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "web"}, service))
	before := client.MergeFrom(service.DeepCopy())
	service.Annotations = map[string]string{ir.ConnectTimeoutAnnotation: "2s345ms", ir.RequestTimeoutAnnotation: "3s456ms"}
	s.must(admin.Patch(t.Context(), service, before))
	for _, want := range []string{`"connect_timeout": "2.345s"`, `"timeout": "3.456s"`} {
		poll.Until(t, patience, "the proxy has "+want, func() error {
			text, err := proxy.Get(t.Context(), "/config_dump")
			if err == nil && !strings.Contains(text, want) {
				err = fmt.Errorf("it has %d bytes without that", len(text))
			}
			return err
		})
	}
	backend.Answers(t, patience, fronts["web"], "200 one")
}
