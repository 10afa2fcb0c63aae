// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/actions/proxies"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/proxieshttp"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

// Proxies has the values of the page of proxies.
type Proxies struct {
	// Report has the answers of the replicas of the discovery server; nil where they could not be asked, and Unread has
	// the reason.
	Report   *proxies.Report
	Releases []v1alpha1.ABRelease
	// Namespace and Stage narrow the proxies down; an empty value lets all through.
	Namespace, Stage string
	Unread           Unread
	Now              time.Time
}

// UnreadProxies is the key of [Unread] for proxies that no replica could be asked about, and UnreadReplicas that for
// the proxies of replicas that did not answer.
const (
	UnreadProxies  = "proxy"
	UnreadReplicas = "proxy of each replica"
)

// ProxiesOf shows how far each proxy is, the worst first, and which splits the proxies have acknowledged.
func ProxiesOf(in *Proxies) Page {
	return Page{
		Title: "Proxies", Entry: ProxiesPath, Time: in.Now, Unread: in.Unread.sentences(),
		Filters:  []Filter{namespaceFilter(in.Namespace), {Name: "stage", Label: "Stage", Value: in.Stage, Options: stageNames()}},
		Sections: []Section{proxySection(in), {Title: "Splits", Table: splitsOf(in)}},
	}
}

func stageNames() []string {
	var names []string
	for _, s := range proxies.Stages() {
		names = append(names, string(s))
	}
	return names
}

func proxySection(in *Proxies) Section {
	t := &Table{
		Caption: "Proxies, the worst first",
		Columns: []string{"Pod", "Stage", "Acknowledged", "On the way", "Held", "Refused", "Connected for", "Replica", "Envoy", "Unserved"}, Empty: "There is no proxy.",
	}
	if in.Report == nil {
		t.Empty = "The proxies are not known."
		return Section{Title: "Proxies", Table: t}
	}
	if in.Report.Silent() != nil {
		t.Empty = "No replica that answered has a proxy."
	}
	shown := keep(in.Report.Proxies, func(p *proxies.Proxy) bool { return matches(in.Stage, string(p.Stage)) })
	for i := range shown {
		p := &shown[i]
		acknowledged, count := p.CountAcknowledged()
		pod := text(p.Namespace + "/" + p.Pod)
		if p.Replica != "" {
			pod = link(pathOf(ProxiesPath, p.Namespace, p.Pod), pod.Text)
		}
		t.Rows = append(t.Rows, []Cell{
			pod, proxyStage(p.Stage), text(acknowledged), text(count(ads.OnTheWay)), text(count(ads.Held)), text(count(ads.Refused)),
			age(new(metav1.NewTime(p.ConnectedSince)), in.Now), text(p.Replica), text(p.Envoy), {Lines: p.Unserved},
		})
	}
	return Section{Title: "Proxies", Lines: []string{(&proxies.Report{Proxies: shown}).Summarize()}, Table: t.cut()}
}

// proxyStage draws a stage with a mark, so that no reader needs the color.
func proxyStage(s ads.Stage) Cell {
	c := Cell{Text: string(s), Mark: "…", State: "gate-unknown"}
	switch s {
	case ads.Acknowledged:
		c.Mark, c.State = "✓", "gate-ok"
	case ads.Refused, proxieshttp.Blocked, proxies.NotConnected:
		c.Mark, c.State = "✗", "gate-holds"
	case proxies.Unknown:
		c.Mark = "?"
	case ads.Held, ads.Going, ads.OnTheWay, ads.Queued, proxieshttp.Waiting:
	}
	return c
}

// splitsOf says of each release which sequence all its proxies have, and which proxies are out of sync.
func splitsOf(in *Proxies) *Table {
	t := &Table{
		Caption: "Splits of releases, as the status of each release tells",
		Columns: []string{"Release", "Sequence in force", "Acknowledged by all", "Proxies", "Knowledge", "Out of sync", "In force for", "Stated for"}, Empty: "There is no release.",
	}
	if _, unread := in.Unread["ABRelease"]; unread {
		t.Empty = "The releases are not known."
	}
	for i := range in.Releases {
		r := &in.Releases[i]
		release := link(pathOf(ReleasesPath, r.Namespace, r.Name), r.Namespace+"/"+r.Name)
		inForce := ""
		if r.Status.Effective != nil {
			inForce = fmt.Sprint(r.Status.Effective.Sequence)
		}
		told := r.Status.Acknowledged
		if told == nil {
			t.Rows = append(t.Rows, []Cell{release, text(inForce), text(wording.Unknown), {}, {}, {}, age(r.Status.EffectiveTime, in.Now), {}})
			continue
		}
		confirmed := wording.Unknown
		if told.Sequence > 0 {
			confirmed = fmt.Sprint(told.Sequence)
		}
		t.Rows = append(t.Rows, []Cell{
			release, text(inForce), text(confirmed), text(told.Count), text(string(told.Knowledge)), {Lines: linesOutOfSync(told.OutOfSync)},
			age(r.Status.EffectiveTime, in.Now), age(statedTime(r), in.Now),
		})
	}
	return t.cut()
}

func linesOutOfSync(outOfSync []v1alpha1.OutOfSyncProxy) (lines []string) {
	for _, p := range outOfSync {
		lines = append(lines, wording.AppendReason(p.Name, p.Why))
	}
	return lines
}

// statedTime returns when the statement about the proxies of a release last turned; nil where the status has none.
func statedTime(r *v1alpha1.ABRelease) *metav1.Time {
	if c := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionAcknowledged); c != nil {
		return &c.LastTransitionTime
	}
	return nil
}

// ProxyOf shows the resources of the proxy of a pod; of each connection, if there are two.
func ProxyOf(report *proxies.Report, unread Unread, now time.Time) Page {
	first := &report.Proxies[0]
	page := Page{Title: "Proxy " + first.Namespace + "/" + first.Pod, Entry: ProxiesPath, Time: now, Unread: unread.sentences()}
	for i := range report.Proxies {
		p := &report.Proxies[i]
		t := &Table{
			Caption: "Resources at the proxy, as replica " + p.Replica + " tells",
			Columns: []string{"Type", "Name", "Stage", "Has", "Wants", "For", "Why"}, Empty: "The resources of the proxy are not known.",
		}
		for j := range p.Resources {
			r := &p.Resources[j]
			since := Cell{}
			if r.Since != nil {
				since = age(new(metav1.NewTime(*r.Since)), now)
			}
			t.Rows = append(t.Rows, []Cell{text(r.Type), text(r.Name), proxyStage(r.Stage), text(r.Has), text(r.Wants), since, text(r.Why)})
		}
		page.Sections = append(page.Sections, Section{Title: "Connection to " + p.Replica, Facts: proxies.Describe(p, now), Table: t.cut()})
	}
	return page
}
