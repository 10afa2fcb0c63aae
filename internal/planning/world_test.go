// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"
	"testing"

	"github.com/plumbline-dev/plumbline/internal/planning/planningtest"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

var (
	epoch       = planningtest.Epoch
	deployments = planningtest.Deployments
)

// cluster is one that the policy of it is asked about.
type cluster struct{ *planningtest.Cluster }

func newCluster(t testing.TB) *cluster { return &cluster{planningtest.New(t)} }

func (c *cluster) live() *Live {
	return &Live{Reader: c.Reader(), Mapper: planningtest.Mapper(), Excluded: specguard.ExcludedNamespaces("plumbline-system")}
}

func (c *cluster) question() Question {
	return Question{Policy: c.Policy, InitiatedBy: planner.InitiatedByItself, Now: epoch}
}

// gather asks about the policy.
func (c *cluster) gather() *Gathered {
	c.T.Helper()
	g, err := Gather(context.Background(), c.live(), c.question())
	if err != nil {
		c.T.Fatal(err)
	}
	return g
}
