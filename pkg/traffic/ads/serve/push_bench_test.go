// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
)

// BenchmarkPush is a change of one resource of fifty, to a proxy that acknowledges it: what the server and the
// client take and allocate, without TLS.
func BenchmarkPush(b *testing.B) {
	w := newWorld(b, serve.Config{})
	w.group.Publish(services(50))
	p := w.connect("web-0")
	p.ask(ads.Cluster)
	p.gets()
	p.ask(ads.Endpoints, "shop/web-0|8080|stable")
	p.gets()
	b.ReportAllocs()
	before := processor(b)
	for i := range b.N {
		w.group.PublishChanges(nil, []*ads.Resource{resource(ads.Endpoints, "shop/web-0|8080|stable", fmt.Sprint(i, " ", strings.Repeat("e", 800)))})
		p.gets()
	}
	b.ReportMetric(float64((processor(b)-before).Microseconds())/float64(b.N), "µs-cpu/push")
}
