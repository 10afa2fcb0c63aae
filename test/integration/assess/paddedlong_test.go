// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/replay"
	"github.com/plumbline-dev/plumbline/test/harness/seed"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// listTime bounds a wait for an assessor that lists 500 MiB.
const listTime = 5 * time.Minute

// TestFourHundredPaddedDeploymentsStayWithinTheMemoryLimit is
// TestPaddedObjectsOfOneTenantDoNotFillTheMemory in full size, with the shipped process
// and the limits of the chart: while objects come, while they change, and after a restart
// that lists all of them at once.
func TestFourHundredPaddedDeploymentsStayWithinTheMemoryLimit(t *testing.T) {
	if os.Getenv(seed.Long) != "1" {
		t.Skipf("it stores 500 MiB; %s=1 runs it", seed.Long)
	}
	const objects, namespaces = 400, 4
	limit, goLimit := assessorMemory(t)
	worlds := make([]*world, namespaces)
	for i := range worlds {
		worlds[i] = newWorld(t)
		worlds[i].removeAtEnd()
	}
	other := newWorld(t)
	p := startWithin(t, goLimit)
	guards := make([]*v1alpha1.SpecGuard, namespaces)
	for i, w := range worlds {
		guards[i] = w.UnderGuard()
	}
	other.UnderGuard()
	other.Deploy(ci, "small")
	other.UntilIs("small", "InSync")
	each(t, objects, func(i int) error {
		w := worlds[i%namespaces]
		d := guarded.Deployment(w.namespace, fmt.Sprintf("padded-%d", i))
		d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PAD", Value: randomText(uint64(i), 1_200<<10)}} //nolint:gosec // not negative
		return w.As(ci).Create(t.Context(), d)
	})
	judged := func() {
		t.Helper()
		for i, w := range worlds {
			w.awaitObjects(guards[i], objects/namespaces)
		}
		peak := peakBytes(t, p)
		t.Logf("peak %d MiB of %d", peak>>20, limit>>20)
		if peak > limit {
			t.Errorf("the peak of the resident memory is %d MiB, the limit of the chart %d MiB", peak>>20, limit>>20)
		}
	}
	judged()
	each(t, objects, func(i int) error {
		w := worlds[i%namespaces]
		return w.As(alice).Patch(t.Context(), w.Named(fmt.Sprintf("padded-%d", i)), guarded.ImagePatch("registry.example/evil:1"))
	})
	judged()
	kill(t, p)
	p = startWithin(t, goLimit)
	other.SetImage(alice, "small", "registry.example/evil:1")
	poll.Until(t, listTime, "the drift of the small object is found after the restart", func() error {
		b, err := other.Baseline("small")
		if err != nil {
			return err
		}
		return guarded.Reads("Drifted: Changed " + imagePath + " by alice (Untrusted, WriterStamp)")(b)
	})
	judged()
}

// each calls a function with the numbers below n, four at a time.
func each(t *testing.T, n int, do func(i int) error) {
	t.Helper()
	group, _ := errgroup.WithContext(t.Context())
	group.SetLimit(4)
	for i := range n {
		group.Go(func() error { return do(i) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// randomText is text that no compression makes much smaller.
func randomText(source uint64, length int) string {
	raw := make([]byte, length*3/4)
	random := rand.New(rand.NewPCG(source, 1))
	for i := range raw {
		raw[i] = byte(random.Uint32())
	}
	return base64.StdEncoding.EncodeToString(raw)
}

// awaitObjects waits until a guard counts so many objects.
func (w *world) awaitObjects(g *v1alpha1.SpecGuard, want int32) {
	w.t.Helper()
	poll.Until(w.t, listTime, fmt.Sprintf("the guard counts %d objects", want), func() error {
		var baselines v1alpha1.BaselineList
		if err := admin.List(w.Ctx(), &baselines, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		judged := int32(0)
		for i := range baselines.Items {
			if baselines.Items[i].Status.State != "" {
				judged++
			}
		}
		if judged != want {
			return fmt.Errorf("%d Baselines of %s have a state", judged, g.Namespace)
		}
		return nil
	})
}

// peakBytes is the most memory that was ever resident.
func peakBytes(t *testing.T, p *server.Process) int64 {
	t.Helper()
	_, peak, err := replay.ResidentBytes(p.PID())
	if err != nil {
		t.Fatal(err)
	}
	return peak
}

// assessorMemory is the limit of the assessor's memory in the chart, and its GOMEMLIMIT.
func assessorMemory(t *testing.T) (limit int64, goLimit string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(rendered.ChartDir(), "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var values struct {
		Assessor struct {
			GoMemoryLimit string
			Resources     corev1.ResourceRequirements
		}
	}
	if err := yaml.Unmarshal(raw, &values); err != nil {
		t.Fatal(err)
	}
	memory := values.Assessor.Resources.Limits[corev1.ResourceMemory]
	if memory.Cmp(resource.MustParse("1Mi")) < 0 || values.Assessor.GoMemoryLimit == "" {
		t.Fatalf("the chart limits the memory to %s and Go to %q", memory.String(), values.Assessor.GoMemoryLimit)
	}
	return memory.Value(), values.Assessor.GoMemoryLimit
}
