// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/connector/traefik"
	"github.com/plumbline-dev/plumbline/internal/connector/traefik/provider"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
)

// countEvery is the time between two looks at the metrics of a Traefik, as proxies of the mesh have it.
const countEvery = 10 * time.Second

// traefiks has the configurations that Traefiks poll, by the name of the TrafficRouter.
type traefiks struct {
	// preparing is held while a configuration is prepared, which reads from the API server.
	preparing sync.Mutex

	mu  sync.Mutex
	all map[string]*polled
}

// polled is the configuration of one TrafficRouter.
type polled struct {
	provider   *provider.Provider
	uid        types.UID
	generation int64
	// secrets are the last values of Secrets, for the time in which the API server is away.
	secrets map[v1alpha1.RouterSecretKey]string
	end     context.CancelFunc
}

// FindProvider returns the provider that the Traefiks of a TrafficRouter poll; nil for a name that is not known.
func (r *Registry) FindProvider(router string) *provider.Provider {
	if of := r.traefiks.findPolled(router); of != nil {
		return of.provider
	}
	return nil
}

func (t *traefiks) findPolled(router string) *polled {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all[router]
}

// findCurrent returns nil unless the configuration is that of the spec.
func (t *traefiks) findCurrent(of *v1alpha1.TrafficRouter) *polled {
	t.mu.Lock()
	defer t.mu.Unlock()
	if has := t.all[of.Name]; has != nil && has.uid == of.UID && has.generation == of.Generation {
		return has
	}
	return nil
}

// connectTraefik returns the router of a release at the Traefiks of a TrafficRouter. Traefiks that are not prepared yet
// make the split Unknown, and are no reason to refuse the release.
func (r *Registry) connectTraefik(ctx context.Context, name types.NamespacedName, of *v1alpha1.TrafficRouter) (traffic.Router, error) {
	switch {
	case of.Spec.Traefik == nil:
		return nil, fmt.Errorf("TrafficRouter %s has type Traefik without a block traefik", of.Name)
	case r.Endpoints == nil:
		return nil, fmt.Errorf("TrafficRouter %s: no Traefik is served here: set routers.traefik.enabled in the values of the chart", of.Name)
	}
	has := r.traefiks.findCurrent(of)
	if has == nil {
		var err error
		if has, err = r.prepareTraefik(ctx, of); err != nil {
			r.note(of.UID, err.Error(), nil)
		}
	}
	return has.provider.Router(name), nil
}

// PrepareTraefik has the Traefiks of a TrafficRouter served as its spec and its Secrets are now. The first call restores
// the splits that are in force; the Traefiks get no answer before.
func (r *Registry) PrepareTraefik(ctx context.Context, of *v1alpha1.TrafficRouter) error {
	if of.Spec.Traefik == nil {
		return nil
	}
	has, err := r.prepareTraefik(ctx, of)
	if err != nil {
		return err
	}
	r.note(of.UID, has.provider.LastFailure(), nil)
	return nil
}

func (r *Registry) prepareTraefik(ctx context.Context, of *v1alpha1.TrafficRouter) (*polled, error) {
	r.traefiks.preparing.Lock()
	defer r.traefiks.preparing.Unlock()
	has := r.traefiks.findPolled(of.Name)
	if has != nil && has.uid != of.UID {
		r.DropTraefik(of.Name)
		has = nil
	}
	if has == nil {
		has = &polled{uid: of.UID, secrets: map[v1alpha1.RouterSecretKey]string{}}
	}
	config := r.configureTraefik(ctx, of, has.secrets)
	if has.provider == nil {
		has.provider = provider.New(config)
		var running context.Context
		running, has.end = context.WithCancel(r.Context)
		go has.provider.Run(running) //nolint:contextcheck // it runs for the time of leading
	}
	has.provider.ReplaceConfig(config)
	r.traefiks.keepPolled(of, has)
	if has.provider.IsOpen() {
		return has, nil
	}
	if err := r.restoreSplits(ctx, of.Name, has.provider); err != nil {
		return has, err
	}
	has.provider.Open()
	return has, nil
}

func (t *traefiks) keepPolled(of *v1alpha1.TrafficRouter, is *polled) {
	t.mu.Lock()
	defer t.mu.Unlock()
	is.generation = of.Generation
	if t.all == nil {
		t.all = map[string]*polled{}
	}
	t.all[of.Name] = is
}

// restoreSplits has a provider carry out the splits that are in force. The controller stores the status of a release
// before a Traefik gets the split, so a list past the cache has each split that a former leader has served.
func (r *Registry) restoreSplits(ctx context.Context, router string, to *provider.Provider) error {
	var all v1alpha1.ABReleaseList
	if err := r.Live.List(ctx, &all); err != nil {
		return fmt.Errorf("listing the effective splits: %w", err)
	}
	for i := range all.Items {
		split, isEffective := release.SplitOf(&all.Items[i])
		if isEffective && all.Items[i].Spec.NamesRouter(router) {
			to.RestoreSplit(client.ObjectKeyFromObject(&all.Items[i]), split)
		}
	}
	return nil
}

// DropTraefik ends the provider of a TrafficRouter that is gone. Its Traefiks keep their configuration.
func (r *Registry) DropTraefik(router string) {
	r.traefiks.mu.Lock()
	defer r.traefiks.mu.Unlock()
	if has := r.traefiks.all[router]; has != nil {
		has.end()
		delete(r.traefiks.all, router)
	}
}

// forgetAtTraefiks drops the split and the counts of a release that is gone.
func (r *Registry) forgetAtTraefiks(name types.NamespacedName) {
	r.traefiks.mu.Lock()
	defer r.traefiks.mu.Unlock()
	for _, has := range r.traefiks.all {
		has.provider.ForgetRelease(name)
	}
}

// configureTraefik returns the configuration that a TrafficRouter describes. A Secret that cannot be read has its last
// value; the status of the TrafficRouter says why.
func (r *Registry) configureTraefik(ctx context.Context, of *v1alpha1.TrafficRouter, secrets map[v1alpha1.RouterSecretKey]string) provider.Config {
	read := func(ref v1alpha1.RouterSecretKey) string {
		if value, err := r.Resolve(ctx, notify.SecretRef{Name: ref.Name, Key: ref.Key}); err == nil {
			secrets[ref] = value
		}
		return secrets[ref]
	}
	config := provider.Config{
		Endpoints: r.Endpoints, Client: r.TraefikClient, Settle: settleOf(&of.Spec), Every: countEvery, Now: r.Now,
		Token: read(of.Spec.Traefik.TokenSecretRef), Programs: programsOf(of.Spec.Traefik),
	}
	for i := range config.Programs {
		if ref := of.Spec.Traefik.Programs[i].PasswordSecretRef; ref != nil {
			config.Programs[i].Password = read(*ref)
		}
	}
	for i := range of.Spec.Traefik.Ports {
		config.Served = append(config.Served, servedOf(&of.Spec.Traefik.Ports[i]))
	}
	return config
}

// programsOf returns the Traefiks of a TrafficRouter, without passwords.
func programsOf(spec *v1alpha1.TraefikRouter) []provider.Program {
	programs := make([]provider.Program, 0, len(spec.Programs))
	for i := range spec.Programs {
		programs = append(programs, provider.Program{Name: spec.Programs[i].Name, URL: spec.Programs[i].URL, User: spec.Programs[i].User})
	}
	return programs
}

func servedOf(port *v1alpha1.TraefikPort) traefik.Served {
	served := traefik.Served{
		Service: types.NamespacedName{Namespace: port.Namespace, Name: port.ServiceName}, Port: uint16(port.Port), //nolint:gosec // the schema bounds it
		HTTP2: port.Protocol == v1alpha1.TraefikHTTP2,
	}
	route := cmp.Or(port.Route, &v1alpha1.TraefikRoute{})
	served.Route = traefik.Route{Rule: route.Rule, EntryPoints: route.EntryPoints, Priority: int(route.Priority)}
	return served
}
