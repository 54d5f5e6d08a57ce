"""Log-mel features against sums by hand, and the two sets that have them."""

import numpy as np
import pytest
import scipy.signal

from fedsim.errors import DataError
from fedsim.learning.data.sound.mel import BANDS, FRAMES, log_mel, read_wav
from fedsim.learning.data.sound.speech_commands import SpeechCommands
from fedsim.learning.data.sound.spoken_digits import SpokenDigits
from tests.support.data_files import wav, write_speech_commands, write_spoken_digits, written

RATE = 8000


def test_a_recording_is_read_as_it_was_written(tmp_path):
    sound = np.array([0.0, 0.5, -1.0, 1 / 2**15])
    np.testing.assert_array_equal(read_wav(written(tmp_path / "a.wav", wav(sound, RATE)), RATE), sound)
    with pytest.raises(DataError, match=r"a\.wav: has 1 channels, 2 bytes a sample and 8000 samples a second; allowed"):
        read_wav(tmp_path / "a.wav", 16_000)
    with pytest.raises(DataError, match=r"b\.wav: cannot be read as a WAV file"):
        read_wav(written(tmp_path / "b.wav", b"RIFF"), RATE)


@pytest.mark.parametrize("lost", [1, 2, 6])
def test_a_recording_that_ends_early_is_refused_with_its_name(lost, tmp_path):
    content = wav(np.full(4, 0.5), RATE)[:-lost]
    with pytest.raises(DataError, match=rf"c\.wav: its header claims 4 samples, and it has {(8 - lost) // 2}"):
        read_wav(written(tmp_path / "c.wav", content), RATE)


def by_the_formula(sound, rate):
    """Return the features before they become integers: SciPy's transform of frames, and triangles by interpolation."""
    length, hop = round(0.064 * rate), round(0.032 * rate)
    whole = np.zeros(31 * hop + length)
    whole[: min(sound.size, whole.size)] = sound[: whole.size]
    window = scipy.signal.get_window("hann", length, fftbins=False)
    frequency, _, spectrum = scipy.signal.stft(
        *(whole, rate, window, length, length - hop), boundary=None, padded=False, detrend=False
    )
    power = np.abs(spectrum * 256) ** 2  # SciPy divides by the sum of the window
    mel = np.linspace(2595 * np.log10(1 + 60 / 700), 2595 * np.log10(1 + rate / 2 / 700), 34)
    hertz = 700 * (10 ** (mel / 2595) - 1)
    triangles = [np.interp(frequency, hertz[b : b + 3], [0, 1, 0], left=0, right=0) for b in range(32)]
    return 2 * (10 * np.log10(np.maximum(np.array(triangles) @ power, 1e-10)).T + 90)


@pytest.mark.parametrize("rate", [8000, 16_000])
def test_features_are_those_of_the_formula(rate):
    """Noise in all bands, a tone, and a length of less or more than the frames."""
    rng = np.random.default_rng(0)
    for size in (rate // 3, 2 * rate):
        sound = 0.02 * rng.normal(size=size) + 0.1 * np.sin(2 * np.pi * 440 * np.arange(size) / rate)
        expected, found = by_the_formula(sound, rate), log_mel(sound, rate).astype(float)
        assert expected[0].min() > 20
        assert expected.max() < 255
        # Rounded to whole numbers; a level at half of one may go either way.
        assert np.abs(np.maximum(expected, 0) - found).max() <= 0.5 + 1e-6


def test_speech_commands_keep_the_publishers_lists(tmp_path):
    write_speech_commands(tmp_path)
    data = SpeechCommands().load(tmp_path)
    assert (len(data.train_y), len(data.test_y), data.classes, data.shape) == (135, 12, 3, (1, FRAMES, BANDS))
    assert np.bincount(data.train_users).tolist() == [15] * 9
    assert np.bincount(data.train_y).tolist() == [45] * 3
    folder = tmp_path / "SpeechCommands/speech_commands_v0.02"
    (folder / "testing_list.txt").write_text("")
    with pytest.raises(DataError, match=r"testing_list\.txt: has no samples for training, or none for tests"):
        SpeechCommands().load(tmp_path)


@pytest.mark.parametrize(("gone", "words"), [("*.wav", "5 of the 15"), ("00000009_nohash_4.wav", "1 of the 15")])
def test_recordings_that_the_lists_name_must_exist(gone, words, tmp_path):
    """Of the word "go" the lists name four takes for testing and one for validation."""
    write_speech_commands(tmp_path)
    folder = tmp_path / "SpeechCommands/speech_commands_v0.02"
    for path in (folder / "go").glob(gone):
        path.unlink()
    with pytest.raises(
        DataError, match=rf"{words} recordings that testing_list.* do not exist, first go/00000009_nohash"
    ):
        SpeechCommands().load(tmp_path)


def test_spoken_digits_from_features_and_from_recordings(tmp_path):
    write_spoken_digits(tmp_path)
    data = SpokenDigits().load(tmp_path)
    assert (len(data.train_y), len(data.test_y), data.shape) == (140, 100, (1, FRAMES, BANDS))
    assert np.bincount(data.train_users).tolist() == [70, 70]
    tone = np.sin(np.arange(900))
    for name, take in (("jackson", 0), ("jackson", 7), ("theo", 6)):
        written(tmp_path / f"raw/fsdd/recordings/3_{name}_{take}.wav", wav(0.1 * tone, RATE))
    data = SpokenDigits().load(tmp_path / "raw")
    np.testing.assert_array_equal(
        data.train_x[0, ..., 0], log_mel(read_wav(tmp_path / "raw/fsdd/recordings/3_theo_6.wav", RATE), RATE)
    )
    assert (data.train_users.tolist(), data.train_y.tolist(), len(data.test_y)) == ([0, 1], [3, 3], 1)


@pytest.mark.parametrize(
    "change", [{"logmel": np.zeros((3, 32, 31), np.uint8)}, {"label": np.zeros(2)}, {"take": None}]
)
def test_other_features_are_refused(change, tmp_path):
    arrays = {"logmel": np.zeros((3, 32, 32), np.uint8)} | {k: np.arange(3) for k in ("label", "speaker", "take")}
    (tmp_path / "fsdd").mkdir()
    np.savez(tmp_path / "fsdd/fsdd_logmel.npz", **{k: v for k, v in (arrays | change).items() if v is not None})
    with pytest.raises(DataError, match=r"fsdd_logmel\.npz: "):
        SpokenDigits().load(tmp_path)
