// SPDX-License-Identifier: Apache-2.0

package proxies

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/internal/proxieshttp"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
)

// listProxies prints a line for each proxy.
func (a *app) listProxies(ctx context.Context, c *invocation.Cluster, servers []discoveryServer, o *options) error {
	filter := proxieshttp.Filter{Namespace: o.namespace(c), Service: o.service}
	if !absent(ads.Stage(o.stage)) {
		filter.Stage = ads.Stage(o.stage)
	}
	report := askAll(ctx, servers, func(ctx context.Context, replica proxieshttp.Client) (proxieshttp.List, error) {
		return replica.List(ctx, filter)
	})
	// Whoever is left out by a filter would look as if nobody knew it.
	if filter.Service == "" && filter.Stage == "" {
		pods, err := injectedPods(ctx, c, o.namespace(c))
		if err != nil {
			a.Warn("which injected pods are not connected cannot be said: %v", err)
		}
		report.addAbsent(pods)
	}
	if stage := ads.Stage(o.stage); absent(stage) {
		report.Proxies = slices.DeleteFunc(report.Proxies, func(p proxyReport) bool { return p.Stage != stage })
	}
	sortProxies(report.Proxies)
	if err := a.printProxies(report, c.Namespace, o); err != nil {
		return err
	}
	return report.silent()
}

func (a *app) printProxies(report *listReport, namespace string, o *options) error {
	if o.output == "json" || o.output == "yaml" {
		return a.PrintStructured(o.output, report)
	}
	if len(report.Proxies) == 0 {
		_, err := fmt.Fprintf(a.ErrOut, "No proxies found%s.\n", invocation.Printable(o.where(namespace)))
		return err
	}
	columns := []invocation.Column{
		{Name: "Pod"}, {Name: "Stage"}, {Name: "Acknowledged"}, {Name: "On-The-Way"}, {Name: "Held"}, {Name: "Refused"}, {Name: "Connected"},
		{Name: "Queued", Wide: true}, {Name: "Going", Wide: true}, {Name: "Replica", Wide: true}, {Name: "Envoy", Wide: true}, {Name: "Token-Until", Wide: true}, {Name: "Node", Wide: true}, {Name: "Service-Account", Wide: true},
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
	return a.Print("\n", report.summary(), "\n")
}

func (a *app) proxyRow(p *proxyReport) []any {
	total := 0
	for _, n := range p.Stages {
		total += n
	}
	acknowledged, count := fmt.Sprintf("%d/%d", p.Stages[ads.Acknowledged], total), func(s ads.Stage) string { return fmt.Sprint(p.Stages[s]) }
	if absent(p.Stage) || p.Blocked || p.Waiting {
		acknowledged, count = "<unknown>", func(ads.Stage) string { return "" }
	}
	connected, token := "", ""
	if !p.ConnectedSince.IsZero() {
		connected = a.FormatAge(metav1.NewTime(p.ConnectedSince))
	}
	if !p.TokenExpires.IsZero() {
		token = wording.FormatTimestamp(metav1.NewTime(p.TokenExpires))
	}
	return []any{
		p.Pod, string(p.Stage), acknowledged, count(ads.OnTheWay), count(ads.Held), count(ads.Refused), connected,
		count(ads.Queued), count(ads.Going), p.Replica, p.Envoy, token, p.Node, p.ServiceAccount,
	}
}

// summary counts the proxies by their stage.
func (r *listReport) summary() string {
	counts := map[ads.Stage]int{}
	for i := range r.Proxies {
		counts[r.Proxies[i].Stage]++
	}
	var parts []string
	for _, s := range proxyStages() {
		if counts[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[s], s))
		}
	}
	return fmt.Sprintf("%d proxies: %s", len(r.Proxies), strings.Join(parts, ", "))
}

// showProxy prints all resources of the proxy of one pod.
func (a *app) showProxy(ctx context.Context, c *invocation.Cluster, servers []discoveryServer, pod string, o *options) error {
	report := askAll(ctx, servers, func(ctx context.Context, replica proxieshttp.Client) (proxieshttp.List, error) {
		list, _, err := replica.Proxy(ctx, c.Namespace, pod, proxieshttp.Filter{Service: o.service, Stage: ads.Stage(o.stage)})
		return list, err
	})
	if len(report.Proxies) == 0 {
		return errors.Join(whyNotConnected(ctx, c, report, pod), report.silent())
	}
	if o.output == "json" || o.output == "yaml" {
		return invocation.FirstError(a.PrintStructured(o.output, report), report.silent())
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
	return report.silent()
}

// whyNotConnected says what is known of a pod that no replica knows.
func whyNotConnected(ctx context.Context, c *invocation.Cluster, report *listReport, name string) error {
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
	case report.silent() != nil:
		return fmt.Errorf("pod %s has a proxy (mode %s) that no replica knows which answered", name, mode)
	}
	return fmt.Errorf("pod %s has a proxy (mode %s) that is %s: no replica of the discovery server knows it. Its own log is in `kubectl logs %s -c %s`",
		name, mode, stageNotConnected, name, inject.ProxyContainer)
}

func (a *app) describeProxy(p *proxyReport, o *options) error {
	d := &invocation.Description{}
	d.Field("Pod", p.Namespace+"/"+p.Pod)
	d.Field("Stage", string(p.Stage))
	d.Field("Replica", p.Replica)
	d.Field("Node", p.Node)
	d.Field("Envoy", p.Envoy)
	d.Field("Account", p.ServiceAccount)
	d.Field("Connected", wording.FormatTimestamp(metav1.NewTime(p.ConnectedSince))+" ("+a.FormatAgo(metav1.NewTime(p.ConnectedSince))+")")
	if !p.TokenExpires.IsZero() {
		d.Field("Token", "until "+wording.FormatTimestamp(metav1.NewTime(p.TokenExpires)))
	}
	if p.Blocked {
		d.Field("Blocked", "it does not read its stream; its resources are unknown")
	}
	if p.Waiting {
		d.Field("Waiting", "it has asked for no resources yet, or waits for its turn to start")
	}
	for _, what := range p.Unserved {
		d.Field("Unserved", what)
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
