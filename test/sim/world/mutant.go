// SPDX-License-Identifier: Apache-2.0

package world

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/evidence"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
)

// Mutant is an executor with one of its protections taken out. The zero value is
// the real one.
type Mutant struct {
	Name string
	// Breaks are the promises of which one breaks first.
	Breaks []string
	// change a request before it is sent.
	change func(*apiserver.Request)
	// client and targets stand before the real ones.
	client  func(client.WithWatch) client.Client
	targets func(exec.Targets) exec.Targets
}

func (m Mutant) wrapClient(c client.WithWatch) client.Client {
	if m.client == nil {
		return c
	}
	return m.client(c)
}

func (m Mutant) wrapTargets(t exec.Targets) exec.Targets {
	if m.targets == nil {
		return t
	}
	return m.targets(t)
}

// Mutants are the protections without which the promises do not hold.
func Mutants() []Mutant {
	return []Mutant{
		{Name: "writes carry no uid and no resourceVersion", Breaks: []string{"I1", "I3", "I5", "I9"}, targets: func(t exec.Targets) exec.Targets { return unbound{t} }},
		{Name: "nothing is fenced before a plan ends", Breaks: []string{"I5"}, targets: func(t exec.Targets) exec.Targets { return unfenced{t} }},
		{Name: "ledgers are written over whatever is there", Breaks: []string{"I4"}, client: overwriting},
		{Name: "targets are read from a cache", Breaks: []string{"I3", "I5"}, change: cached},
		{Name: "a copy that knows nothing grants", Breaks: []string{"I4", "I11"}, client: granting},
	}
}

// unbound takes what binds a write to what was read out of it.
type unbound struct{ exec.Targets }

func (u unbound) Put(ctx context.Context, ref exec.Reference, body []byte, dryRun bool) ([]byte, error) {
	var o apiserver.Object
	if err := utiljson.Unmarshal(body, &o); err != nil {
		return nil, err
	}
	meta := o["metadata"].(map[string]any)
	delete(meta, "uid")
	delete(meta, "resourceVersion")
	raw, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	return u.Targets.Put(ctx, ref, raw, dryRun)
}

// unfenced says that a fence was stored, and sends none.
type unfenced struct{ exec.Targets }

func (u unfenced) Put(ctx context.Context, ref exec.Reference, body []byte, dryRun bool) ([]byte, error) {
	if !bytes.Contains(body, []byte(evidence.LabelFence)) {
		return u.Targets.Put(ctx, ref, body, dryRun)
	}
	var o apiserver.Object
	if err := utiljson.Unmarshal(body, &o); err != nil {
		return nil, err
	}
	meta := o["metadata"].(map[string]any)
	version, err := strconv.ParseInt(meta["resourceVersion"].(string), 10, 64)
	if err != nil {
		return nil, err
	}
	meta["resourceVersion"] = strconv.FormatInt(version+1, 10)
	return json.Marshal(o)
}

// overwriting writes a ledger's status over the version that is there now.
func overwriting(c client.WithWatch) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			if l, ok := o.(*v1alpha1.RemediationLedger); ok {
				var now v1alpha1.RemediationLedger
				if err := c.Get(ctx, client.ObjectKeyFromObject(l), &now); err != nil {
					return err
				}
				l.ResourceVersion = now.ResourceVersion
			}
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
	})
}

// cached asks for any version of a target, which is what a cache has.
func cached(r *apiserver.Request) {
	if r.Method == http.MethodGet && strings.HasPrefix(r.Path, targetsPath+"/") {
		r.Query.Set("resourceVersion", "0")
	}
}

// granting takes the word of a copy that knows nothing, and so refuses nothing, for
// a place in the ledger, and writes no entry.
func granting(c client.WithWatch) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			if l, ok := o.(*v1alpha1.RemediationLedger); ok {
				var now v1alpha1.RemediationLedger
				if err := c.Get(ctx, client.ObjectKeyFromObject(l), &now); err != nil {
					return err
				}
				if len(l.Status.Entries) > len(now.Status.Entries) {
					return nil
				}
			}
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
	})
}

// replica is how far a cache is behind: some writes, or none.
func (w *World) replica(_ string, now int64) int64 {
	return max(1, now-w.s.Rand().Int64N(40))
}
