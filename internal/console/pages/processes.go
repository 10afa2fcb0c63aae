// SPDX-License-Identifier: Apache-2.0

package pages

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/plumbline-dev/plumbline/internal/actions/records"
	"github.com/plumbline-dev/plumbline/internal/console/view"
	"github.com/plumbline-dev/plumbline/internal/httpapi"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func readEvidence(r *reader) (view.Page, error) {
	archive, found, err := httpapi.VerifyEvidence(r, r.Cluster)
	if err != nil {
		return view.Page{}, err
	}
	return view.EvidenceOf(&view.Evidence{Found: found, Known: &archive.Known, Warnings: archive.Warnings, Now: r.Now()}), nil
}

func readPlanEvidence(r *reader) (view.Page, error) {
	key, err := r.key("RemediationPlan")
	if err != nil {
		return view.Page{}, err
	}
	kept, err := httpapi.ReadOne(r, r.Cluster, "RemediationPlan", &v1alpha1.RemediationPlan{}, key.Namespace, key.Name)
	switch {
	case apierrors.IsNotFound(err):
		kept = nil
	case err != nil:
		return view.Page{}, err
	}
	e, err := httpapi.ReadEvidence(r, r.Cluster, key.Namespace+"."+key.Name, kept)
	if err != nil {
		return view.Page{}, err
	}
	return view.PlanEvidenceOf(e.Packet, &view.Evidence{Found: e.Found, Warnings: e.Warnings, Now: r.Now()}), nil
}

func readReleaseEvidence(r *reader) (view.Page, error) {
	key, err := r.key("ABRelease")
	if err != nil {
		return view.Page{}, err
	}
	archive, err := httpapi.OpenArchive(r, r.Cluster)
	if err != nil {
		return view.Page{}, err
	}
	found, err := archive.Find(r, records.OfRelease(key.Namespace, key.Name, 0))
	if err != nil {
		return view.Page{}, err
	}
	if len(found.Records) == 0 {
		return view.Page{}, wire.NewProblem(wire.NotFound, "there is no good record of this release")
	}
	return view.ReleaseEvidenceOf(key.Namespace, key.Name, &view.Evidence{Found: found, Warnings: archive.Warnings, Now: r.Now()}), nil
}

func readProxies(r *reader) (view.Page, error) {
	namespace, err := r.namespace()
	if err != nil {
		return view.Page{}, err
	}
	in := view.Proxies{Namespace: namespace, Stage: r.value("stage"), Unread: r.unread}
	in.Releases = maybe[v1alpha1.ABRelease](r, "ABRelease", namespace, newReleases)
	if in.Report, err = httpapi.ReadProxies(r, r.Cluster, namespace); err != nil {
		r.unread[view.UnreadProxies] = r.sentenceOf(err)
	} else if err := in.Report.Silent(); err != nil {
		r.unread[view.UnreadReplicas] = r.sentenceOf(err)
	}
	in.Now = r.Now()
	return view.ProxiesOf(&in), nil
}

func readProxy(r *reader) (view.Page, error) {
	key, err := r.key("Pod")
	if err != nil {
		return view.Page{}, err
	}
	report, err := httpapi.ReadProxy(r, r.Cluster, key.Namespace, key.Name)
	if err != nil {
		return view.Page{}, err
	}
	silent := report.Silent()
	switch {
	case len(report.Proxies) == 0 && silent != nil:
		return view.Page{}, silent
	case len(report.Proxies) == 0:
		return view.Page{}, wire.NewProblem(wire.NotFound, "no replica of the discovery server knows a proxy of this pod")
	case silent != nil:
		r.unread[view.UnreadReplicas] = r.sentenceOf(silent)
	}
	return view.ProxyOf(report, r.unread, r.Now()), nil
}
