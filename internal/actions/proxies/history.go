// SPDX-License-Identifier: Apache-2.0

package proxies

import (
	"context"
	"sync"
	"time"

	"github.com/plumbline-dev/plumbline/internal/historyhttp"
	"github.com/plumbline-dev/plumbline/pkg/traffic/history"
)

// historyPatience is how long the leader may take to tell of a release.
const historyPatience = 5 * time.Second

// NotLedError says that no replica of the discovery server leads, so none has a history.
type NotLedError struct{}

func (*NotLedError) Error() string {
	return "no replica of the discovery server leads now, and the leader alone has the history of a release: try again"
}

// History asks every replica at once for the last hour of a release, and returns that of the leader. The error is a
// *SilentError when the leader may be among the replicas that do not answer, and a *NotLedError when no replica leads.
func History(ctx context.Context, servers []Server, of history.Release) (*history.Series, error) {
	ctx, cancel := context.WithTimeout(ctx, historyPatience)
	defer cancel()
	documents := make([]historyhttp.Document, len(servers))
	errs := make([]error, len(servers))
	var asked sync.WaitGroup
	for i := range servers {
		asked.Go(func() { documents[i], errs[i] = historyhttp.Client{HTTP: servers[i].client.HTTP}.Read(ctx, of) })
	}
	asked.Wait()
	report := &Report{}
	for i := range servers {
		if documents[i].Leads {
			return &documents[i].Series, nil
		}
		replica := Replica{Name: servers[i].Name, Answered: errs[i] == nil, err: errs[i]}
		if errs[i] != nil {
			replica.Error = errs[i].Error()
		}
		report.Replicas = append(report.Replicas, replica)
	}
	if err := report.Silent(); err != nil {
		return nil, err
	}
	return nil, &NotLedError{}
}
