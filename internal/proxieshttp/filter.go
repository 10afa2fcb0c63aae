// SPDX-License-Identifier: Apache-2.0

package proxieshttp

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
)

// Stages of a proxy that are none of a resource.
const (
	Blocked ads.Stage = "Blocked"
	Waiting ads.Stage = "Waiting"
)

// Stages that a [Filter] may name.
func Stages() []ads.Stage { return append([]ads.Stage{Blocked, Waiting}, ads.Stages()...) }

// How many proxies a page has.
const (
	defaultLimit = 500
	maxLimit     = 1000
)

// Filter narrows down what is asked for; zero fields do not.
type Filter struct {
	Namespace, Pod string
	// Service is [namespace/]name: only its resources count. Listeners are no Service's:
	// their names are addresses.
	Service string
	// Stage that the proxy has a resource in, or [Blocked] or [Waiting].
	Stage ads.Stage
	// Limit is how many proxies there are on a page.
	Limit int
	// Continue is that of the page before.
	Continue string
}

// Values are the query of a filter.
func (f Filter) Values() url.Values {
	values := url.Values{}
	for name, value := range map[string]string{
		"namespace": f.Namespace, "pod": f.Pod, "service": f.Service, "stage": string(f.Stage), "continue": f.Continue,
	} {
		if value != "" {
			values.Set(name, value)
		}
	}
	if f.Limit > 0 {
		values.Set("limit", strconv.Itoa(f.Limit))
	}
	return values
}

// parse reads a query. A name that is misspelt is an error: it would narrow down
// nothing.
func parse(query url.Values) (Filter, error) {
	f := Filter{Limit: defaultLimit}
	texts := map[string]*string{"namespace": &f.Namespace, "pod": &f.Pod, "service": &f.Service, "continue": &f.Continue}
	for name, values := range query {
		value := cmp.Or(values...)
		switch text := texts[name]; {
		case text != nil:
			*text = value
		case value == "": // a field of a form that was left empty
		case name == "stage":
			f.Stage = ads.Stage(value)
		case name == "limit":
			limit, err := strconv.Atoi(value)
			if err != nil || limit < 1 || limit > maxLimit {
				return f, fmt.Errorf("limit: %q is not a number from 1 to %d", value, maxLimit)
			}
			f.Limit = limit
		default:
			return f, fmt.Errorf("%q is no parameter: want namespace, pod, service, stage, limit or continue", name)
		}
	}
	return f, f.check()
}

func (f Filter) check() error {
	if f.Stage != "" && !slices.Contains(Stages(), f.Stage) {
		return fmt.Errorf("stage: %q is not one of %v", f.Stage, Stages())
	}
	if _, service, qualified := strings.Cut(f.Service, "/"); qualified && (service == "" || strings.Contains(service, "/")) {
		return fmt.Errorf("service: %q is not [namespace/]name", f.Service)
	}
	if _, pod, found := strings.Cut(f.Continue, "/"); f.Continue != "" && (!found || pod == "") {
		return fmt.Errorf("continue: %q is not the end of a page", f.Continue)
	}
	return nil
}

// query of a page.
func (f Filter) query() serve.Query {
	q := serve.Query{Limit: f.Limit, Of: f.counts, Unserved: true}
	q.After = place(f.Continue)
	q.Keep = func(p identity.Proxy) bool {
		return (f.Namespace == "" || p.Namespace == f.Namespace) && (f.Pod == "" || p.Pod == f.Pod)
	}
	return q
}

// place that a page ended with.
func place(text string) serve.Place {
	namespace, pod, _ := strings.Cut(text, "/")
	return serve.Place{Namespace: namespace, Pod: pod}
}

// counts says whether a resource is one of the Service that is asked for.
func (f Filter) counts(k ads.Key) bool {
	if f.Service == "" {
		return true
	}
	namespace, service, found := envoyxds.ServiceOf(k)
	return found && (f.Service == service || f.Service == namespace+"/"+service)
}

// keeps says whether a proxy is shown. Of one whose stages are not known it is not
// known that it has nothing of a Service.
func (f Filter) keeps(c *serve.Connected) bool {
	switch f.Stage {
	case "":
		return f.Service == "" || c.Blocked || c.Waiting || len(c.Counts) > 0
	case Blocked:
		return c.Blocked
	case Waiting:
		return c.Waiting
	default:
		return c.Counts[f.Stage] > 0
	}
}

// narrow leaves the resources of one stage.
func (f Filter) narrow(p *Proxy) {
	if f.Stage == "" || f.Stage == Blocked || f.Stage == Waiting {
		return
	}
	p.Resources = slices.DeleteFunc(p.Resources, func(r Resource) bool { return r.Stage != f.Stage })
}
