// SPDX-License-Identifier: Apache-2.0

package assessor

import (
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/plumbline-dev/plumbline/internal/controller/report"
)

// registerReports registers the controller of reports, if the installation chooses a format.
func registerReports(mgr manager.Manager, setup Setup) error {
	metrics, err := report.NewMetrics(setup.Registry)
	if err != nil || len(setup.Reports) == 0 {
		return err
	}
	reports := &report.Reconciler{
		Client: mgr.GetClient(), Formats: setup.Reports, Metrics: metrics, Interval: setup.ReportInterval, Log: setup.Log.WithName("report"),
	}
	return reports.Register(mgr)
}
