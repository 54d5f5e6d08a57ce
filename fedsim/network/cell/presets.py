"""Cells by name, with the usual numbers of their kind; every option can be changed.

In a preset a table without ``kind`` changes single options of the preset's own table, and one with a ``kind`` replaces
it. A client's share is a tenth of the carrier unless said otherwise. Antennas of clients have a gain of 0 dBi. Clients
in buildings stand on floors (TR 38.901, table 7.2-1), and their shadowing is correlated over shorter distances (table
7.5-6, column O2I). Delay spreads are the normal ones of table 7.7.3-2: 363 ns in UMa at 2 and 6 GHz, and 39 and 30 ns
in an indoor office at 2 and 6 GHz. Offices at 3.5 GHz have the former of these, Wi-Fi at 5.25 GHz the latter. Messages
go by TCP, whose round-trip time is about the sum of the access of both directions and the way to a server in the same
country; those of sensors on NB-IoT go without. These times, the share of the carrier, the load of neighbours and the
power of their clients are assumptions. The crowd's placement is separate: the docstring of a preset names the usual
size of its cell.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from fedsim.network.cell.access import ACCESS_LATENCIES, AccessLatency, GrantAccess
from fedsim.network.cell.cell import Cell, Downlink, Uplink
from fedsim.network.radio.contracts import Fading, PathLoss
from fedsim.network.radio.fading import FADINGS, Rayleigh, Rician, coherence_time_s
from fedsim.network.radio.mcs import ModulationAndCoding
from fedsim.network.radio.path_loss import PATH_LOSSES, LogDistance
from fedsim.network.radio.shadowing import SHADOWINGS, CorrelatedShadowing, Shadowing
from fedsim.network.radio.sites import Sites
from fedsim.network.radio.spectral_efficiency import RATES, RateLaw, Shannon
from fedsim.network.radio.tr38901.indoor import IndoorOffice
from fedsim.network.radio.tr38901.outdoor import UrbanMacro
from fedsim.network.transport.transport import TRANSPORTS, Tcp, Transport
from fedsim.registry import Settings, Slot
from fedsim.units import Bound, Decibels, NonNegative, Seconds

_WALKING_M_PER_S = 3 / 3.6
_UMA_DELAY_SPREAD_S = 363e-9
NR_ACCESS = GrantAccess(downlink_s=0.002, scheduling_request_s=0.003, grant_s=0.003, random_access_s=0.02)
"""Access of NR with slots of 0.5 ms.

From inactive to active 20 ms: the requirement of ITU-R M.2410, section 4.7.2. The others are assumptions of ours. A
request every 5 ms, 2.5 ms until the next and one slot to send it; two slots to decode it and grant, four until the
data, for which TS 38.214, table 6.4-1, leaves a phone 12 symbols or less than one slot. A downlink takes 2 ms; it and a
transmission of data stay below the 4 ms that ITU-R M.2410, section 4.7.1, allows one way.
"""


class Preset(Cell):
    """A cell whose options can be changed one by one, table by table."""

    stands_alone: ClassVar[bool] = True

    @classmethod
    def _completed(cls, options: Mapping[str, Any]) -> Mapping[str, Any]:
        return {name: cls._filled(name, given) for name, given in options.items()}

    @classmethod
    def _filled(cls, name: str, given: Any) -> Any:
        """Return a table with the preset's own options for those left out, unless it names another kind."""
        field = cls.model_fields.get(name)
        own = None if field is None else field.default
        if not (isinstance(given, Mapping) and isinstance(own, Settings)) or "kind" in given:
            return given
        options = {option: getattr(own, option) for option in type(own).model_fields}
        kept = {option: chosen for option, chosen in options.items() if chosen is not None}
        slot = Slot.of(field.metadata) if field is not None else None
        kind = {} if slot is None else {"kind": slot.registry.kind_of(own)}
        return {**kind, **kept, **given}


class UrbanMacroCell(Preset):
    """An LTE macro cell at 2 GHz: UMa, 10 MHz, neighbours half loaded, four of five clients indoors.

    46 dBm (36 dBm in a tenth of the carrier) and 15 dBi at the base station, 23 dBm at the phone, noise figures of 9
    and 5 dB: 3GPP TR 36.942, section 4, and TR 36.814, table A.2.1.1-2. Sites 500 m apart and 80 % indoor clients: TR
    38.901, table 7.2-1; a fifth of them behind infrared-reflecting windows, as in ITU-R M.2412. A client takes the best
    of 7 sites and has two resource blocks in the uplink; clients of other cells send 20 dB below full power on average.
    A cell's corner is 289 m away.
    """

    downlink: Downlink = Downlink(
        bandwidth_hz=1e6, transmit_power_dbm=36.0, transmit_gain_dbi=15.0, noise_figure_db=9.0
    )
    uplink: Uplink = Uplink(bandwidth_hz=360e3, transmit_power_dbm=23.0, receive_gain_dbi=15.0, noise_figure_db=5.0)
    path_loss: Annotated[PathLoss, Slot(PATH_LOSSES)] = UrbanMacro(
        carrier_hz=2e9, indoor_share=0.8, high_loss_share=0.2, indoor_height="by-floor"
    )
    shadowing: Annotated[Shadowing, Slot(SHADOWINGS)] = CorrelatedShadowing(
        decorrelation_m=50.0, indoor_decorrelation_m=7.0
    )
    fading: Annotated[Fading, Slot(FADINGS)] = Rayleigh(coherence_s=coherence_time_s(_WALKING_M_PER_S, 2e9))
    delay_spread_s: Annotated[NonNegative[Seconds], Bound(1e-12, 1e-3)] = _UMA_DELAY_SPREAD_S
    rate: Annotated[RateLaw, Slot(RATES)] = ModulationAndCoding(table="64qam")
    sites: Sites | None = Sites(inter_site_distance_m=500.0, load=0.5, uplink_backoff_db=20.0, serving_rings=1)
    transport: Annotated[Transport, Slot(TRANSPORTS)] = Tcp(rtt_s=0.05)


class IndoorOfficeCell(Preset):
    """A small cell under an office ceiling at 3.5 GHz: InH mixed office, 20 MHz, Rician fading.

    24 dBm (14 dBm in a tenth of the carrier) and 5 dBi at the ceiling, 23 dBm at the client, noise figures of 9 and
    5 dB: 3GPP TR 38.802, table A.2.1-1 (indoor hotspot); K-factor 7 dB: TR 38.901, table 7.5-6. Offices are some 50 m
    across.
    """

    downlink: Downlink = Downlink(bandwidth_hz=2e6, transmit_power_dbm=14.0, transmit_gain_dbi=5.0, noise_figure_db=9.0)
    uplink: Uplink = Uplink(bandwidth_hz=2e6, transmit_power_dbm=23.0, receive_gain_dbi=5.0, noise_figure_db=5.0)
    path_loss: Annotated[PathLoss, Slot(PATH_LOSSES)] = IndoorOffice(carrier_hz=3.5e9)
    shadowing: Annotated[Shadowing, Slot(SHADOWINGS)] = CorrelatedShadowing(decorrelation_m=6.0)
    fading: Annotated[Fading, Slot(FADINGS)] = Rician(k_db=7.0, coherence_s=coherence_time_s(_WALKING_M_PER_S, 3.5e9))
    delay_spread_s: Annotated[NonNegative[Seconds], Bound(1e-12, 1e-3)] = 39e-9
    rate: Annotated[RateLaw, Slot(RATES)] = ModulationAndCoding(table="256qam", gap="nr-ldpc")
    access: Annotated[AccessLatency, Slot(ACCESS_LATENCIES)] = NR_ACCESS
    transport: Annotated[Transport, Slot(TRANSPORTS)] = Tcp(rtt_s=0.03)


class WifiCell(Preset):
    """An access point of IEEE 802.11ac at 5.25 GHz: 20 MHz, stop and wait, at most 7 attempts.

    20 dBm (10 dBm in a tenth of the channel) at the access point, 15 dBm at the client, noise figure 7 dB. The loss is
    that of free space at 5 m (60.8 dB) and grows by 35 dB per decade, with 5 dB of shadowing. So it is in the
    residential and enterprise simulation scenarios of IEEE 802.11ax without walls and floors (document 11-14/0980). At
    1 m it is 10 dB below that of free space.

    In 20 MHz 52 of 64 subcarriers carry data in 3.2 of every 4 us, so 0.65 symbols per second and hertz, and one
    stream has the schemes 0 to 8. A frame lasts 2 ms; to it come a preamble of 40 us, SIFS (16 us), the acknowledgement
    (28 us), DIFS (34 us) and the mean of a first backoff window, 7.5 slots of 9 us, so that ``0.65 * 2000 / 2185.5`` is
    left. The window of a second attempt is twice as long: 8 slots more.

    The times of preamble, acknowledgement, interframe spaces and slots are those of IEEE 802.11 at 5 GHz. A frame of 2
    ms is an assumption of ours, and so is what follows from it. There is no grant, and a message waits for the end of
    the frame that is in the air, on average half of 2 ms; the contention for each frame is part of the rate. After 0.2
    s without a message (an assumption) a station sleeps, and is next awake at a beacon, on average half of 102.4 ms
    later, the usual 100 time units of 1,024 us. A delay spread of 30 ns is also that of model C of IEEE 802.11n
    (document 11-03/0940), a small office.
    """

    downlink: Downlink = Downlink(bandwidth_hz=2e6, transmit_power_dbm=10.0, noise_figure_db=7.0)
    uplink: Uplink = Uplink(bandwidth_hz=2e6, transmit_power_dbm=15.0, noise_figure_db=7.0)
    path_loss: Annotated[PathLoss, Slot(PATH_LOSSES)] = LogDistance(
        exponent=3.5, reference_loss_db=60.8, reference_distance_m=5.0
    )
    shadowing_sigma_db: Annotated[Decibels, Field(ge=0, le=50)] | None = 5.0
    fading: Annotated[Fading, Slot(FADINGS)] = Rayleigh(coherence_s=coherence_time_s(_WALKING_M_PER_S, 5.25e9))
    delay_spread_s: Annotated[NonNegative[Seconds], Bound(1e-12, 1e-3)] = 30e-9
    rate: Annotated[RateLaw, Slot(RATES)] = ModulationAndCoding(
        table="wifi", schemes=9, attempts=7, combining=False, block_s=2e-3, backoff_s=72e-6, overhead=0.405
    )
    access: Annotated[AccessLatency, Slot(ACCESS_LATENCIES)] = GrantAccess(
        downlink_s=1e-3, scheduling_request_s=1e-3, grant_s=0.0, random_access_s=0.0512, inactivity_s=0.2
    )
    transport: Annotated[Transport, Slot(TRANSPORTS)] = Tcp(rtt_s=0.025)


class ContendedWifiCell(WifiCell):
    """The access point of `WifiCell`, whose stations share the channel as those of a wireless LAN do.

    A transmission has the whole 20 MHz, 20 dBm at the access point and 15 dBm at a client. Stations have equal rates,
    since they take turns with frames of equal size, and uplinks lose time to collisions. Downlinks and uplinks take no
    time from one another.
    """

    @property
    def known_deviation(self) -> str:
        return (
            "downlinks and uplinks both have the channel in full, and collisions count frames of one duration, also "
            "where stations have unlike rates"
        )

    downlink: Downlink = Downlink(sharing="rate-fair", bandwidth_hz=2e7, transmit_power_dbm=20.0, noise_figure_db=7.0)
    uplink: Uplink = Uplink(sharing="dcf", bandwidth_hz=2e7, transmit_power_dbm=15.0, noise_figure_db=7.0)


class NarrowbandCell(Preset):
    """A sensor on NB-IoT at 900 MHz: UMa from deep indoors, 180 kHz, at most 127 kbit/s.

    35 dBm and 15 dBi at the base station, 23 dBm at the sensor, noise figures of 5 and 3 dB: 3GPP TR 45.820, annex D.
    The ceiling is the peak rate of category NB2's downlink, 127 kbit/s in 180 kHz (TS 36.306; its uplink may reach
    159). All sensors are in buildings with infrared-reflecting windows and do not move, so that fading lasts for
    seconds. A client has the whole carrier.

    There is no channel for scheduling requests: a sensor asks by a random access. Its waits are assumptions of ours.
    Opportunities are 160 ms apart, one of the periods of TS 36.331, `nprach-Periodicity` (40 ms to 2.56 s): 80 ms until
    the next and 20 ms to send a preamble of some 6 ms and be answered. Control messages go every 50 ms. Random access
    and the resumption of a connection take 0.7 s, as for a sensor in the middle of three classes of coverage, with some
    repetitions of each message; TR 45.820 asks for no more than 10 s in the worst one. A sensor is released after 20 s,
    one of the values of TS 36.331's timer.
    """

    downlink: Downlink = Downlink(
        bandwidth_hz=180e3, transmit_power_dbm=35.0, transmit_gain_dbi=15.0, noise_figure_db=5.0
    )
    uplink: Uplink = Uplink(bandwidth_hz=180e3, transmit_power_dbm=23.0, receive_gain_dbi=15.0, noise_figure_db=3.0)
    path_loss: Annotated[PathLoss, Slot(PATH_LOSSES)] = UrbanMacro(
        carrier_hz=0.9e9, indoor_share=1.0, high_loss_share=1.0, indoor_height="by-floor"
    )
    shadowing: Annotated[Shadowing, Slot(SHADOWINGS)] = CorrelatedShadowing(decorrelation_m=7.0)
    fading: Annotated[Fading, Slot(FADINGS)] = Rayleigh(coherence_s=2.0)
    delay_spread_s: Annotated[NonNegative[Seconds], Bound(1e-12, 1e-3)] = _UMA_DELAY_SPREAD_S
    rate: Annotated[RateLaw, Slot(RATES)] = Shannon(snr_gap_db=3.0, ceiling=0.7)
    access: Annotated[AccessLatency, Slot(ACCESS_LATENCIES)] = GrantAccess(
        downlink_s=0.05,
        scheduling_request_s=0.1,
        grant_s=0.05,
        random_access_s=0.7,
        inactivity_s=20.0,
    )


class MidbandCell(Preset):
    """A 5G macro cell at 3.5 GHz: UMa, 100 MHz, 256-QAM, beams.

    44 dBm per 20 MHz (41 dBm in a tenth of the carrier) and a beam of 24 dBi at the base station, 23 dBm at the phone,
    noise figures of 7 and 5 dB: ITU-R M.2412, dense urban eMBB; sites 200 m apart and 80 % indoor clients, a fifth of
    them behind infrared-reflecting windows. As in `UrbanMacroCell` a client takes the best of 7 sites. A neighbour's
    beam points elsewhere for most of the time: load 0.1.
    """

    downlink: Downlink = Downlink(
        bandwidth_hz=1e7, transmit_power_dbm=41.0, transmit_gain_dbi=24.0, noise_figure_db=7.0
    )
    uplink: Uplink = Uplink(bandwidth_hz=1e7, transmit_power_dbm=23.0, receive_gain_dbi=24.0, noise_figure_db=5.0)
    path_loss: Annotated[PathLoss, Slot(PATH_LOSSES)] = UrbanMacro(
        carrier_hz=3.5e9, indoor_share=0.8, high_loss_share=0.2, indoor_height="by-floor"
    )
    shadowing: Annotated[Shadowing, Slot(SHADOWINGS)] = CorrelatedShadowing(
        decorrelation_m=50.0, indoor_decorrelation_m=7.0
    )
    fading: Annotated[Fading, Slot(FADINGS)] = Rayleigh(coherence_s=coherence_time_s(_WALKING_M_PER_S, 3.5e9))
    delay_spread_s: Annotated[NonNegative[Seconds], Bound(1e-12, 1e-3)] = _UMA_DELAY_SPREAD_S
    rate: Annotated[RateLaw, Slot(RATES)] = ModulationAndCoding(table="256qam", gap="nr-ldpc")
    sites: Sites | None = Sites(inter_site_distance_m=200.0, load=0.1, uplink_backoff_db=20.0, serving_rings=1)
    access: Annotated[AccessLatency, Slot(ACCESS_LATENCIES)] = NR_ACCESS
    transport: Annotated[Transport, Slot(TRANSPORTS)] = Tcp(rtt_s=0.03)
