// SPDX-License-Identifier: Apache-2.0

package proxies

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/actions/wording"
)

// Describe lists the facts about a proxy, without its resources.
func Describe(p *Proxy, now time.Time) []wording.Field {
	connected := metav1.NewTime(p.ConnectedSince)
	fields := []wording.Field{
		{Label: "Pod", Value: p.Namespace + "/" + p.Pod}, {Label: "Stage", Value: string(p.Stage)}, {Label: "Replica", Value: p.Replica},
		{Label: "Node", Value: p.Node}, {Label: "Envoy", Value: p.Envoy}, {Label: "Account", Value: p.ServiceAccount},
		{Label: "Connected", Value: wording.FormatTimestamp(connected) + " (" + wording.FormatAgo(connected, now) + ")"},
	}
	if !p.TokenExpires.IsZero() {
		fields = append(fields, wording.Field{Label: "Token", Value: "until " + wording.FormatTimestamp(metav1.NewTime(p.TokenExpires))})
	}
	if p.Blocked {
		fields = append(fields, wording.Field{Label: "Blocked", Value: "it does not read its stream; its resources are unknown"})
	}
	if p.Waiting {
		fields = append(fields, wording.Field{Label: "Waiting", Value: "it has asked for no resources yet, or waits for its turn to start"})
	}
	for _, what := range p.Unserved {
		fields = append(fields, wording.Field{Label: "Unserved", Value: what})
	}
	return fields
}
