// SPDX-License-Identifier: Apache-2.0

package release

import (
	"strconv"

	"github.com/plumbline-dev/plumbline/internal/actions/progress"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
)

// drawGroups returns a table of the groups whose replicas the run divides.
func drawGroups(groups []progress.Group) []string {
	if len(groups) == 0 {
		return nil
	}
	rows := [][]string{{"", "deployment", "wanted", "replicas", "ready", "restarted"}}
	for i := range groups {
		g := &groups[i]
		name := invocation.Shorten(string(g.Name), maxVariation)
		if g.IsCanary {
			name += " (canary)"
		}
		row := []string{name, invocation.Shorten(invocation.Printable(g.Deployment), maxDeployment)}
		for _, n := range []*int32{g.Wanted, g.Replicas, g.Ready, g.Restarted} {
			row = append(row, formatCount(n))
		}
		rows = append(rows, row)
	}
	return alignRight(rows)
}

// maxDeployment is how many characters of the name of a Deployment the table shows.
const maxDeployment = 32

func formatCount(n *int32) string {
	if n == nil {
		return unknown
	}
	return strconv.Itoa(int(*n))
}
