// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"slices"

	"github.com/plumbline-dev/plumbline/internal/actions/proxies"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
)

type proxyQuery struct {
	Page
	InNamespace
	Stage wire.Word[wire.ProxyStage] `query:"stage" doc:"Proxies whose worst stage this is."`
}

// listProxies answers with the proxies of all replicas. A replica that does not answer is a problem: a list without its
// proxies would say that they are not there.
func listProxies(ctx context.Context, s *server, q *proxyQuery) (*listed[wire.Proxy], error) {
	report, err := ReadProxies(ctx, s.cluster, q.Namespace)
	if err != nil {
		return nil, err
	}
	if err := report.Silent(); err != nil {
		return nil, err
	}
	kept := slices.DeleteFunc(report.Proxies, func(p proxies.Proxy) bool {
		return q.Stage != "" && q.Stage != wire.Spell(wire.ProxyStage(p.Stage))
	})
	return paged(&q.Page, kept, placeOfProxy, func(p proxies.Proxy) wire.Proxy { return wire.ProxyOf(&p) })
}

// placeOfProxy tells two connections of one pod apart, of which there are two for a moment when a proxy connects anew.
func placeOfProxy(p proxies.Proxy) place { return place{p.Namespace, p.Pod + "/" + p.Replica} }
