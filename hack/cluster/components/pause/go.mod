module github.com/plumbline-dev/plumbline/hack/cluster/components/pause

go 1.26.0
