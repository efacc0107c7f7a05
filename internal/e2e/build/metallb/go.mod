module github.com/strictarp/strictarp/internal/e2e/build/metallb

go 1.26.0

tool (
	go.universe.tf/metallb/controller
	go.universe.tf/metallb/speaker
)

require go.universe.tf/metallb v0.16.1
