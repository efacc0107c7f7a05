package strictarp

// Harmful is harmful, which guards what Evaluate offers.
var Harmful = harmful

// The cautions that rules attach to findings.
var (
	LoosenCautions         = loosenCautions
	ARPFilterCautions      = arpFilterCautions
	UselessSysctlCautions  = uselessSysctlCautions
	StrictARPFalseCaution  = strictARPFalseCaution
	BindVIPCaution         = bindVIPCaution
	DeleteHeldCaution      = deleteHeldCaution
	StaticNeighbourCaution = staticNeighbourCaution
	ExcludeLabelCaution    = excludeLabelCaution
	RestartCaution         = restartCaution
	OneSuccessCaution      = oneSuccessCaution
)
