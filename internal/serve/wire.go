// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"fmt"

	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/console/pages"
	"github.com/plumbline-dev/plumbline/internal/elected"
	"github.com/plumbline-dev/plumbline/internal/evidencehttp"
	"github.com/plumbline-dev/plumbline/internal/httpapi"
	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/internal/serve/answers"
	"github.com/plumbline-dev/plumbline/internal/serve/callers"
	"github.com/plumbline-dev/plumbline/internal/serve/cluster"
	"github.com/plumbline-dev/plumbline/internal/serve/door"
	"github.com/plumbline-dev/plumbline/internal/serve/login"
	"github.com/plumbline-dev/plumbline/internal/serve/rights"
	"github.com/plumbline-dev/plumbline/internal/servertime"
	"github.com/plumbline-dev/plumbline/pkg/tlsport"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
)

// New makes all parts, and starts none.
func New(s Setup) (*Server, error) {
	config := rest.CopyConfig(s.Config)
	config.QPS = -1 // the API server's priority and fairness decides
	times := servertime.New(s.Clock)
	times.Watch(config)
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making the client: %w", err)
	}
	types, err := elected.Kinds()
	if err != nil {
		return nil, err
	}
	mapper, err := kube.NewMapperFor(config, httpClient)
	if err != nil {
		return nil, err
	}
	shared, err := cache.New(config, cache.Options{HTTPClient: httpClient, Scheme: types, Mapper: mapper, DefaultTransform: cache.TransformStripManagedFields()})
	if err != nil {
		return nil, fmt.Errorf("making the cache: %w", err)
	}
	tokens, err := identity.NewAPI(config)
	if err != nil {
		return nil, err
	}
	access, err := authorizationclient.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("making the client of reviews: %w", err)
	}
	reviews, port, metrics := answers.NewMetrics(), tlsport.NewMetrics("plumbline_api"), door.NewMetrics()
	if err := errors.Join(s.Registry.Register(reviews), s.Registry.Register(port), s.Registry.Register(metrics)); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	own, err := client.New(config, client.Options{HTTPClient: httpClient, Scheme: types, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("making the client of the account: %w", err)
	}
	readable, err := cluster.New(&cluster.Config{
		Server: config, Scheme: types, Mapper: mapper, Cache: shared, Now: times.Now, Log: s.Log,
		Processes: cluster.Processes{Namespace: s.Namespace, Reader: own, HTTP: evidencehttp.NewClient()},
		Rights:    rights.New(rights.NewReviewer(access.SubjectAccessReviews()), s.Clock, reviews.Of("access")),
	})
	if err != nil {
		return nil, err
	}
	api, known := httpapi.New(readable, s.Version, s.Log), callers.New(tokens, s.Clock, reviews.Of("token"))
	if err := s.Registry.Register(api.StreamMetrics()); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	return &Server{setup: s, cache: shared, api: api, port: port, door: door.New(door.Config{
		API: api, Callers: known, Console: consoleOf(&s, readable, api, known),
		Hosts: s.Hosts, Bounds: s.Bounds, Metrics: metrics, Log: s.Log,
	})}, nil
}

// consoleOf makes the console for browsers; nil if none is served.
func consoleOf(s *Setup, readable *cluster.Cluster, api *httpapi.API, known *callers.Callers) *door.Console {
	if s.Sessions == nil {
		return nil
	}
	return &door.Console{
		Pages: pages.New(readable.Console(), api, s.Log),
		Login: login.New(login.Config{Keys: s.Sessions.Keys, Callers: known, Provider: s.Sessions.Issuer, Clock: s.Clock, Log: s.Log}),
	}
}
