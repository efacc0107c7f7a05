package exchange_test

import (
	_ "k8s.io/client-go/informers"
	_ "k8s.io/client-go/kubernetes/fake"
	_ "k8s.io/client-go/rest"
	_ "github.com/prometheus/client_golang/prometheus/promhttp"
)
