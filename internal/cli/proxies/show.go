// SPDX-License-Identifier: Apache-2.0

package proxies

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions/proxies"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/internal/proxieshttp"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
)

// listProxies prints a line for each proxy.
func (a *app) listProxies(ctx context.Context, c *invocation.Cluster, servers []proxies.Server, o *options) error {
	filter := proxieshttp.Filter{Namespace: o.namespace(c), Service: o.service}
	if !proxies.Absent(ads.Stage(o.stage)) {
		filter.Stage = ads.Stage(o.stage)
	}
	report := proxies.List(ctx, servers, filter)
	// A proxy that a filter leaves out would look like a proxy without a replica.
	if filter.Service == "" && filter.Stage == "" {
		pods, err := proxies.ListInjected(ctx, c, o.namespace(c))
		if err != nil {
			a.Warn("which injected pods are not connected cannot be said: %v", err)
		}
		report.AddAbsent(pods)
	}
	if stage := ads.Stage(o.stage); proxies.Absent(stage) {
		report.Proxies = slices.DeleteFunc(report.Proxies, func(p proxies.Proxy) bool { return p.Stage != stage })
	}
	report.Sort()
	if err := a.printProxies(report, c.Namespace, o); err != nil {
		return err
	}
	return report.Silent()
}

func (a *app) printProxies(report *proxies.Report, namespace string, o *options) error {
	if invocation.IsStructured(o.output) {
		return a.PrintReport(o.output, "ProxyReport", report)
	}
	if len(report.Proxies) == 0 {
		_, err := fmt.Fprintf(a.ErrOut, "No proxies found%s.\n", invocation.Printable(o.where(namespace)))
		return err
	}
	columns := []invocation.Column{
		{Name: "Pod"}, {Name: "Stage"}, {Name: "Acknowledged"}, {Name: "On-The-Way"}, {Name: "Held"}, {Name: "Refused"}, {Name: "Connected"},
		{Name: "Queued", Wide: true}, {Name: "Going", Wide: true}, {Name: "Replica", Wide: true}, {Name: "Kind", Wide: true}, {Name: "Envoy", Wide: true}, {Name: "Token-Until", Wide: true}, {Name: "Node", Wide: true}, {Name: "Service-Account", Wide: true},
	}
	if o.allNamespaces {
		columns = append([]invocation.Column{{Name: "Namespace"}}, columns...)
	}
	var rows [][]any
	for i := range report.Proxies {
		row := a.proxyRow(&report.Proxies[i])
		if o.allNamespaces {
			row = append([]any{report.Proxies[i].Namespace}, row...)
		}
		rows = append(rows, row)
	}
	if err := a.PrintTable(invocation.TableOptions{Wide: o.output == "wide", NoHeaders: o.noHeaders}, columns, rows); err != nil || o.noHeaders {
		return err
	}
	return a.Print("\n", report.Summarize(), "\n")
}

func (a *app) proxyRow(p *proxies.Proxy) []any {
	acknowledged, count := p.CountAcknowledged()
	connected, token := "", ""
	if !p.ConnectedSince.IsZero() {
		connected = a.FormatAge(metav1.NewTime(p.ConnectedSince))
	}
	if !p.TokenExpires.IsZero() {
		token = wording.FormatTimestamp(metav1.NewTime(p.TokenExpires))
	}
	return []any{
		p.Pod, string(p.Stage), acknowledged, count(ads.OnTheWay), count(ads.Held), count(ads.Refused), connected,
		count(ads.Queued), count(ads.Going), p.Replica, p.Kind, p.Envoy, token, p.Node, p.ServiceAccount,
	}
}

// showProxy prints all resources of the proxy of one pod.
func (a *app) showProxy(ctx context.Context, c *invocation.Cluster, servers []proxies.Server, pod string, o *options) error {
	report := proxies.Get(ctx, servers, c.Namespace, pod, proxieshttp.Filter{Service: o.service, Stage: ads.Stage(o.stage)})
	if len(report.Proxies) == 0 {
		return errors.Join(whyNotConnected(ctx, c, report, pod), report.Silent())
	}
	if invocation.IsStructured(o.output) {
		return invocation.FirstError(a.PrintReport(o.output, "ProxyReport", report), report.Silent())
	}
	for i := range report.Proxies {
		if i > 0 {
			if err := a.Print("\n"); err != nil {
				return err
			}
		}
		if err := a.describeProxy(&report.Proxies[i], o); err != nil {
			return err
		}
	}
	return report.Silent()
}

// whyNotConnected tells the known facts about a pod that no replica knows.
func whyNotConnected(ctx context.Context, c *invocation.Cluster, report *proxies.Report, name string) error {
	pod := &corev1.Pod{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: name}, pod); err != nil {
		return err
	}
	mode, injected := pod.Labels[inject.LabelProxy]
	switch {
	case !injected:
		return fmt.Errorf("pod %s has no proxy: it was made without one (the label %s asks for it)", name, inject.LabelInject)
	case pod.Status.Phase != corev1.PodRunning:
		return fmt.Errorf("pod %s has a proxy (mode %s), and does not run: its phase is %s", name, mode, pod.Status.Phase)
	case report.Silent() != nil:
		return fmt.Errorf("pod %s has a proxy (mode %s) that no replica knows which answered", name, mode)
	}
	return fmt.Errorf("pod %s has a proxy (mode %s) that is %s: no replica of the discovery server knows it. Its own log is in `kubectl logs %s -c %s`",
		name, mode, proxies.NotConnected, name, inject.ProxyContainer)
}

func (a *app) describeProxy(p *proxies.Proxy, o *options) error {
	d := &invocation.Description{}
	for _, field := range proxies.Describe(p, a.Now()) {
		d.Field(field.Label, field.Value)
	}
	if err := a.Print(d.String()); err != nil || len(p.Resources) == 0 {
		return err
	}
	var rows [][]any
	for i := range p.Resources {
		rows = append(rows, a.resourceRow(&p.Resources[i]))
	}
	if err := a.Print("\n"); err != nil {
		return err
	}
	columns := []invocation.Column{{Name: "Type"}, {Name: "Name"}, {Name: "Stage"}, {Name: "Has"}, {Name: "Sent", Wide: true}, {Name: "Wants"}, {Name: "Since"}, {Name: "Why"}}
	return a.PrintTable(invocation.TableOptions{Wide: o.output == "wide", NoHeaders: o.noHeaders}, columns, rows)
}

func (a *app) resourceRow(r *proxieshttp.Resource) []any {
	since := ""
	if r.Since != nil {
		since = a.FormatAge(metav1.NewTime(r.Since.Truncate(time.Second)))
	}
	return []any{r.Type, r.Name, string(r.Stage), r.Has, r.Sent, r.Wants, since, r.Why}
}
