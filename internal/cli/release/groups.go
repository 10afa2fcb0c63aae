// SPDX-License-Identifier: Apache-2.0

package release

import (
	"github.com/plumbline-dev/plumbline/internal/actions/progress"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// drawGroups returns a table of the groups whose replicas the run divides.
func drawGroups(groups []progress.Group) []string {
	if len(groups) == 0 {
		return nil
	}
	rows := [][]string{{"", "deployment", "wanted", "replicas", "ready", "restarted"}}
	for i := range groups {
		shown := groups[i]
		shown.Name = v1alpha1.VariationName(wording.Shorten(string(shown.Name), maxVariation))
		shown.Deployment = wording.Shorten(shown.Deployment, maxDeployment)
		rows = append(rows, progress.GroupRow(&shown))
	}
	return alignRight(rows)
}

// maxDeployment is how many characters of the name of a Deployment the table shows.
const maxDeployment = 32
