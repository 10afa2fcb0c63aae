// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/acknowledged"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// BenchmarkObserve is a look at one release among 10,000 proxies, a hundred of which have to acknowledge
// it, from the pods on.
func BenchmarkObserve(b *testing.B) {
	var pods []corev1.Pod
	x := acknowledged.NewIndex()
	for i := range 10_000 {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprintf("ns%03d", i%100), Name: fmt.Sprint("p", i), UID: types.UID(fmt.Sprint("uid-", i)), Labels: map[string]string{inject.LabelProxy: string(inject.Redirect)},
		}}
		p.Spec.InitContainers = []corev1.Container{{Name: inject.ProxyContainer, RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}
		p.Status.Phase = corev1.PodRunning
		pods = append(pods, p)
		who := acknowledged.Proxy{UID: string(p.UID), Namespace: p.Namespace, Pod: p.Name}
		x.Opened(who, begin)
		for r := range 5 {
			x.Happened(who, ads.Acked{Resources: []*ads.Resource{{Type: ads.Route, Name: fmt.Sprintf("ns%03d/web%d|80", i%100, r), Version: ads.Version{Sequence: 7, Hash: "h"}}}})
		}
	}
	web := ir.Service{Namespace: "ns000", Name: "web0", Ports: []ir.Port{{Number: 80, Protocol: ir.HTTP}}}
	b.ReportAllocs()
	for b.Loop() {
		d := &Directory{cluster: &cluster{}}
		wanted := voters{web, d.scopes(), nil, func(*corev1.Pod) string { return "" }, false}.wanted(pods)
		uids := make([]string, 0, len(wanted))
		for _, w := range wanted {
			uids = append(uids, w.UID)
		}
		seen := acknowledged.Judge(acknowledged.Question{
			Now: begin.Add(time.Minute), Applied: []acknowledged.Applied{{Sequence: 7, At: begin}}, Wanted: wanted,
			Replicas: []acknowledged.Replica{{Name: "a", Heard: true, Records: x.Records(uids, routesOf(wanted))}},
		})
		if seen.Acknowledged != 100 || seen.Wanted != 100 {
			b.Fatalf("%d of %d have acknowledged", seen.Acknowledged, seen.Wanted)
		}
	}
}
