// SPDX-License-Identifier: Apache-2.0

//go:build integration

package peers

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
)

// registersReplicaSets is a setting of the chart. By default, ReplicaSets are not registered,
// and no write of theirs is sent to Plumbline.
const registersReplicaSets = `guard.resources=[{"group":"apps","version":"v1","resource":"deployments","scale":true},{"group":"apps","version":"v1","resource":"replicasets","scale":true}]`

// replicaSetVerbs are the writes of the deployment controller, as the API server's metrics
// name them.
var replicaSetVerbs = []string{"POST", "PUT", "PATCH"}

// replicaSetWrites are the writes of ReplicaSets so far, by verb.
type replicaSetWrites map[string]struct{ seconds, count float64 }

// BenchmarkControllers measures the writes of ReplicaSets that a real kube-controller-manager
// makes while a trusted writer deploys, by the API server's own histogram: with Plumbline,
// where ReplicaSets are registered, and without. The namespaces take turns. Each iteration
// is one run; use -benchtime 1x.
func BenchmarkControllers(b *testing.B) {
	w := newWorld(b)
	all := &bench{B: b, world: w, variants: []variant{neither, withPlumbline}}
	chart := renderChart(b, "--set-json", registersReplicaSets)
	p := startPlumbline(b, w, chart, func(*unstructured.Unstructured) []string { return []string{withPlumbline.name} })
	all.prepare(p, small)
	controllers, err := apiserver.StartControllers(w.dir, w.kubeconfig, "deployment-controller")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { report(b, controllers.Stop(context.WithoutCancel(b.Context()))) })
	for _, v := range all.variants {
		all.awaitRollouts(v)
	}
	for b.Loop() {
		b.Logf("load average at the start %s", loadAverage(b))
		sums := map[string]replicaSetWrites{neither.name: {}, withPlumbline.name: {}}
		for began := time.Now(); time.Since(began) < duration(b)/4; {
			for _, v := range all.variants {
				before := readReplicaSetWrites(b, w)
				all.deployAll(v)
				sums[v.name].add(before, readReplicaSetWrites(b, w))
			}
		}
		b.Logf("load average at the end %s\n\n%s", loadAverage(b), replicaSetTable(all.variants, sums))
		b.ReportMetric(0, "ns/op")
	}
}

// deployAll sets another image in each Deployment of a namespace, and waits for what the
// deployment controller makes of that.
func (b *bench) deployAll(v variant) {
	b.Helper()
	c := cell{kind: small, writers: 1, user: trusted}
	for writer := range maxWriters {
		for n := range perWriter {
			if _, _, err := b.scene.write(b.Context(), c, v.name, small.objectName(writer, n)); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.awaitRollouts(v)
}

// awaitRollouts waits until the deployment controller has dealt with each Deployment.
func (b *bench) awaitRollouts(v variant) {
	b.Helper()
	eventually(b.B, "the controller has seen the Deployments of "+v.name, func() error {
		var list appsv1.DeploymentList
		if err := b.world.admin.List(b.Context(), &list, client.InNamespace(v.name)); err != nil {
			return err
		}
		for i := range list.Items {
			if d := &list.Items[i]; d.Status.ObservedGeneration < d.Generation {
				return fmt.Errorf("%s has generation %d, and the controller has seen %d", d.Name, d.Generation, d.Status.ObservedGeneration)
			}
		}
		return nil
	})
}

func readReplicaSetWrites(b *testing.B, w *world) replicaSetWrites {
	b.Helper()
	const histogram = "apiserver_request_duration_seconds"
	page, writes := metricsPage(b, w), replicaSetWrites{}
	for _, verb := range replicaSetVerbs {
		labels := []string{`resource="replicasets"`, `subresource=""`, fmt.Sprintf("verb=%q", verb)}
		now := writes[verb]
		now.seconds, now.count = sumOf(b, page, histogram+"_sum", labels...), sumOf(b, page, histogram+"_count", labels...)
		writes[verb] = now
	}
	return writes
}

// add adds the writes between two readings.
func (s replicaSetWrites) add(before, after replicaSetWrites) {
	for _, verb := range replicaSetVerbs {
		sum := s[verb]
		sum.seconds += after[verb].seconds - before[verb].seconds
		sum.count += after[verb].count - before[verb].count
		s[verb] = sum
	}
}

func replicaSetTable(variants []variant, sums map[string]replicaSetWrites) string {
	lines := []string{"| ReplicaSets | Verb | Writes | Mean, ms |", "|---|---|---|---|"}
	for _, v := range variants {
		for _, verb := range replicaSetVerbs {
			if sum := sums[v.name][verb]; sum.count > 0 {
				lines = append(lines, fmt.Sprintf("| %s | %s | %.0f | %.2f |", v.name, verb, sum.count, 1000*sum.seconds/sum.count))
			}
		}
	}
	return strings.Join(lines, "\n")
}
